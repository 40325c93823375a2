/* Survey: the states of many sensors of a shard at once, for lists. A look (look.h) has all samples of one sensor; a survey has a
 * few numbers of up to a thousand sensors.
 *
 *   hk_survey_new -> handle[] filled in -> hk_survey_post -> (outcome is no longer HK_SURVEY_WAITS) -> hk_survey_release
 *
 * The shard takes it between two turns when nothing is in flight. If something always is, it launches nothing after
 * HK_LOOK_PATIENCE until the survey is taken, at most once in HK_LOOK_REST, as for looks. Then it wakes waiting connections and
 * calls `ready`.
 *
 * A sensor's last score is not part of its state: the shard remembers it (hk_scores_note), until the next start.
 *
 * Thread: the requester's, except survey.c's functions for the shard. */
#ifndef HK_SURVEY_H
#define HK_SURVEY_H

#include "cpu/rules/alert.h"
#include "cpu/rules/window.h"
#include "daemon/scoring/shard.h"

#include <stdatomic.h>

#define HK_SURVEY_WAITS 1
#define HK_SURVEY_MEMBERS 1000u

/* One sensor. */
struct hk_surveyed {
  uint32_t handle;
  bool there; /* the sensor exists and has a detector; else the following is unknown */
  bool held;  /* its device has a state of it; else it is a machine's, and window and alert are zero */
  struct hk_detector detector;
  struct hk_window window;
  struct hk_alert alert;
  uint32_t *member; /* of a machine's series: handles of its sensors, at most HK_SURVEY_MEMBERS; NULL: none. The survey owns it */
  uint32_t members; /* total number of them */
  struct hk_profile *profile; /* of a model's series: the line that the survey asks for; NULL: none. The survey owns it */
  double explained;           /* share that the model of a line explains; NAN: no model (field_rows.h) */
  double value;               /* the newest sample that arrived; NAN: none */
  float score;                /* the last since the start; NAN: none, or it warms up */
};

struct hk_survey {
  struct hk_survey *next; /* the shard's */
  int64_t posted;         /* ns, hk_now */
  atomic_int outcome;     /* HK_SURVEY_WAITS; 0: taken; -ENODEV: nothing computes; -EAGAIN: not at the moment; -ENOMEM */
  atomic_uint holders;
  void (*ready)(void *arg); /* NULL, or called from the shard's thread; must be brief. arg outlives the shard's thread */
  void *arg;
  uint32_t line; /* of models, whose profiles are wanted; UINT32_MAX: none, as a new survey has it */
  uint32_t n;
  struct hk_surveyed sensor[];
};

/* slots: within the shard; log: size of the score log (score_log.h), bytes; 0: none. Returns 0 or -ENOMEM. */
int hk_surveys_open(struct hk_surveys *surveys, uint32_t slots, uint64_t log);
/* Shutdown: surveys are no longer taken, and `ready` is not called. */
void hk_surveys_close(struct hk_surveys *surveys);

/* Makes a survey with room for n sensors. NULL: no memory. */
struct hk_survey *hk_survey_new(uint32_t n);
void hk_survey_release(struct hk_survey *survey); /* NULL is allowed */
/* Hands the survey to the shard that has all of its sensors. */
void hk_survey_post(struct hk_shard *shard, struct hk_survey *survey);

/* Thread of the following: the shard's. Takes the surveys that are possible now. Returns whether there were any. */
bool hk_shard_take_surveys(struct hk_shard *shard);
/* Whether a survey has waited so long that nothing may be launched before it. */
bool hk_shard_survey_waits(const struct hk_shard *shard);

/* Remembers the scores of a batch whose slots are the shard's. */
void hk_scores_note(struct hk_shard *shard, const struct hk_batch *batch);
/* The last score of a sensor since the start, or NAN; within: its slot of the shard. Thread: any. */
float hk_score_of(const struct hk_shard *shard, uint32_t within);
/* The slot is about to be given to another sensor. */
void hk_scores_forget(struct hk_shard *shard, uint32_t within);

#endif

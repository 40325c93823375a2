#include "daemon/bridge/cluster_mail.h"

#include "daemon/bridge/cluster_internal.h"
#include "daemon/bridge/letter.h"
#include "daemon/bridge/machine_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define EVERY (2 * SECOND) /* between two notices */
#define JOBS 64u           /* questions of others that are answered at a time */

struct hk_mail_question {
  struct hk_mail_question *next;
  uint64_t id;
  char machine[HK_MACHINE_MAX + 1];
  struct hk_buffer text;
  int64_t deadline; /* ns, hk_now */
  void (*ready)(void *arg);
  void *arg;
  struct hk_buffer answer;
  atomic_uint status; /* 0: not yet */
  atomic_uint holders;
};

/* A question of another machine. */
struct mail_job {
  struct mail_job *next;
  uint64_t id;
  int64_t deadline; /* ns, hk_now: who asked has given up by then */
  char machine[HK_MACHINE_MAX + 1];
  struct hk_buffer answer;
  void *job; /* of struct hk_mail_answers */
};

struct mail {
  int wake;                       /* eventfd: there is a new question, or a job may have a result */
  pthread_mutex_t lock;           /* protects the following: */
  struct hk_mail_question *asked; /* list: to be sent */
  bool connected;
  struct hk_machine_table table; /* has a lock of its own */

  struct hk_mail_question *open; /* the thread's, as all below: list, sent */
  struct mail_job *jobs;
  uint32_t n_jobs;
  uint64_t last;    /* id of the last question */
  int64_t noticed;  /* ns: when the last notice was sent, */
  uint64_t version; /* and of which version it was */
  struct hk_buffer out;
};

static void mail_wake(void *arg)
{
  const struct mail *m = arg;
  const uint64_t one = 1;
  const ssize_t n = write(m->wake, &one, sizeof one);
  (void)n;
}

static int mail_begin(struct hk_cluster *c)
{
  struct mail *m = calloc(1, sizeof *m);
  c->state = m;
  if (!m)
    return -ENOMEM;
  pthread_mutex_init(&m->lock, NULL);
  hk_machine_table_init(&m->table);
  m->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (m->wake < 0)
    return -errno;
  return getrandom(&m->last, sizeof m->last, 0) == (ssize_t)sizeof m->last ? 0 : -EIO;
}

/* --- questions of this machine ------------------------------------------------------------------------------------------ */

void hk_mail_forget(struct hk_mail_question *q)
{
  if (!q || atomic_fetch_sub(&q->holders, 1) != 1)
    return;
  hk_buffer_free(&q->text);
  hk_buffer_free(&q->answer);
  free(q);
}

/* The question is answered, and is no longer in a list. */
static void mail_end(struct hk_mail_question *q, unsigned status)
{
  atomic_store_explicit(&q->status, status, memory_order_release);
  q->ready(q->arg);
  hk_mail_forget(q);
}

/* Ends all of these, since nothing can be sent. */
static void mail_refuse(struct hk_mail_question *all, const char *why)
{
  while (all) {
    struct hk_mail_question *next = all->next;
    hk_buffer_print(&all->answer, "%s scores it, and this machine has no connection to the broker: %s", all->machine, why);
    mail_end(all, 503);
    all = next;
  }
}

struct hk_mail_question *hk_mail_ask(struct hk_cluster *c, const char *machine, const struct hk_buffer *question,
                                     void (*ready)(void *arg), void *arg)
{
  struct mail *m = c->state;
  struct hk_mail_question *q = calloc(1, sizeof *q);
  if (!q)
    return NULL;
  snprintf(q->machine, sizeof q->machine, "%s", machine);
  hk_buffer_put(&q->text, question->data, question->size);
  q->ready = ready;
  q->arg = arg;
  atomic_init(&q->holders, 2);
  if (q->text.failed || question->failed) {
    atomic_init(&q->holders, 1);
    hk_mail_forget(q);
    return NULL;
  }
  pthread_mutex_lock(&m->lock);
  const bool connected = m->connected;
  if (connected) {
    q->next = m->asked;
    m->asked = q;
  }
  pthread_mutex_unlock(&m->lock);
  if (connected)
    mail_wake(m);
  else
    mail_refuse(q, "it is tried again");
  return q;
}

unsigned hk_mail_answered(struct hk_mail_question *q, struct hk_buffer *out)
{
  const unsigned status = atomic_load_explicit(&q->status, memory_order_acquire);
  if (status == 0)
    return 0;
  hk_buffer_put(out, q->answer.data, q->answer.size);
  out->failed |= q->answer.failed;
  return status;
}

/* Takes the question with an id out of the list; NULL: there is none. */
static struct hk_mail_question *mail_take(struct mail *m, uint64_t id)
{
  struct hk_mail_question **link = &m->open, *q;
  while (*link && (*link)->id != id)
    link = &(*link)->next;
  if ((q = *link) != NULL)
    *link = q->next;
  return q;
}

static struct hk_mail_question *mail_all_asked(struct mail *m)
{
  pthread_mutex_lock(&m->lock);
  struct hk_mail_question *all = m->asked;
  m->asked = NULL;
  pthread_mutex_unlock(&m->lock);
  return all;
}

static int mail_send(struct hk_cluster *c)
{
  struct mail *m = c->state;
  int status = 0;
  for (struct hk_mail_question *q = mail_all_asked(m), *next; q; q = next) {
    next = q->next;
    q->id = ++m->last;
    q->deadline = hk_now() + HK_MAIL_WAIT * SECOND;
    q->next = m->open;
    m->open = q;
    if (status != 0)
      continue; /* its end is that of the connection */
    struct hk_letter l = { .kind = HK_LETTER_QUESTION, .id = q->id };
    snprintf(l.machine, sizeof l.machine, "%s", c->self.machine);
    m->out.size = 0;
    hk_letter_begin(&m->out, &l);
    hk_buffer_put(&m->out, q->text.data, q->text.size);
    status = c->kind->post(c->engine, q->machine, m->out.data, m->out.size);
  }
  return status;
}

static void mail_expire(struct mail *m)
{
  const int64_t now = hk_now();
  for (struct hk_mail_question *q = m->open, *next; q; q = next) {
    next = q->next;
    if (q->deadline > now || mail_take(m, q->id) != q)
      continue;
    hk_buffer_print(&q->answer, "%s scores it, and did not answer within %d s", q->machine, HK_MAIL_WAIT);
    mail_end(q, 504);
  }
}

/* --- questions of others ------------------------------------------------------------------------------------------------ */

static void mail_drop_job(struct hk_cluster *c, struct mail_job *j)
{
  struct mail *m = c->state;
  struct mail_job **link = &m->jobs;
  while (*link != j)
    link = &(*link)->next;
  *link = j->next;
  m->n_jobs--;
  if (j->job)
    c->net->mail->drop(j->job);
  hk_buffer_free(&j->answer);
  free(j);
}

static int mail_answer(struct hk_cluster *c, const char *machine, uint64_t id, unsigned status, const struct hk_buffer *answer)
{
  struct mail *m = c->state;
  const bool fits = !answer->failed && answer->size < HK_ENGINE_MESSAGE_MAX - 4096;
  const struct hk_letter l = { .kind = HK_LETTER_ANSWER, .id = id, .status = fits ? status : 503 };
  m->out.size = 0;
  hk_letter_begin(&m->out, &l);
  if (fits)
    hk_buffer_put(&m->out, answer->data, answer->size);
  return c->kind->post(c->engine, machine, m->out.data, m->out.size);
}

/* Answers the questions whose answers are ready, and forgets those for which it is too late. */
static int mail_go_on(struct hk_cluster *c)
{
  struct mail *m = c->state;
  int status = 0;
  for (struct mail_job *j = m->jobs, *next; j && status == 0; j = next) {
    next = j->next;
    const unsigned code = c->net->mail->result(j->job, &j->answer);
    if (code == 0 && hk_now() < j->deadline)
      continue;
    status = code != 0 ? mail_answer(c, j->machine, j->id, code, &j->answer) : 0;
    mail_drop_job(c, j);
  }
  return status;
}

static int mail_take_up(struct hk_cluster *c, const struct hk_letter *l)
{
  struct mail *m = c->state;
  static const struct hk_buffer nothing;
  struct mail_job *j = m->n_jobs < JOBS ? calloc(1, sizeof *j) : NULL;
  if (!j)
    return mail_answer(c, l->machine, l->id, 503, &nothing);
  j->id = l->id;
  j->deadline = hk_now() + HK_MAIL_WAIT * INT64_C(1000000000);
  snprintf(j->machine, sizeof j->machine, "%s", l->machine);
  j->next = m->jobs;
  m->jobs = j;
  m->n_jobs++;
  j->job = c->net->mail->begin(c->net->mail->arg, l->body, l->size, mail_wake, m);
  if (j->job)
    return 0; /* the next turn looks whether it has a result */
  const int status = mail_answer(c, l->machine, l->id, 503, &nothing);
  mail_drop_job(c, j);
  return status;
}

/* --- notices ---------------------------------------------------------------------------------------------------------------- */

/* Sends a notice to all; ends: it is the last one. */
static int mail_tell(struct hk_cluster *c, bool ends)
{
  struct mail *m = c->state;
  struct hk_letter l = { .kind = HK_LETTER_NOTICE };
  snprintf(l.machine, sizeof l.machine, "%s", c->self.machine);
  m->noticed = hk_now();
  m->version = c->net->mail->version(c->net->mail->arg);
  m->out.size = 0;
  hk_letter_begin(&m->out, &l);
  if (!ends)
    c->net->mail->notice(c->net->mail->arg, &m->out);
  if (!m->out.failed)
    return c->kind->post(c->engine, NULL, m->out.data, m->out.size);
  hk_buffer_free(&m->out);
  return 0; /* without memory it is told later */
}

bool hk_mail_holder(struct hk_cluster *c, uint32_t partition, struct hk_holder *out)
{
  struct mail *m = c ? c->state : NULL;
  return m && hk_machine_table_holder(&m->table, partition, out);
}

uint32_t hk_mail_machines(struct hk_cluster *c, bool reports, struct hk_mail_machine out[HK_MAIL_MACHINES])
{
  struct mail *m = c ? c->state : NULL;
  return m ? hk_machine_table_list(&m->table, reports, out) : 0;
}

/* --- turns -------------------------------------------------------------------------------------------------------------- */

static void mail_connected(struct mail *m, bool is)
{
  pthread_mutex_lock(&m->lock);
  m->connected = is;
  pthread_mutex_unlock(&m->lock);
}

static int mail_greeted(struct hk_cluster *c)
{
  int status = c->kind->mailbox(c->engine, c->self.machine);
  if (status == 0)
    status = mail_tell(c, false);
  mail_connected(c->state, status == 0);
  return status;
}

static void mail_leave_out(struct hk_cluster *c, unsigned version)
{
  if (version > HK_LETTER_VERSION)
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster",
                "a letter of version %u is left out; this hankeld reads version %d: its writer is not shown here, and gets no "
                "answers: upgrade this machine",
                version, HK_LETTER_VERSION);
  else
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "a letter is left out: it cannot be read");
}

static int mail_came(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  struct mail *m = c->state;
  struct hk_letter l;
  struct hk_mail_question *q;
  unsigned version;
  if (e->what != HK_ENGINE_LETTER && e->what != HK_ENGINE_RETURNED)
    return 0;
  if (!hk_letter_read(e->data, e->size, &l, &version)) {
    mail_leave_out(c, version);
    return 0;
  }
  if (e->what == HK_ENGINE_RETURNED) {
    if (l.kind != HK_LETTER_QUESTION || !(q = mail_take(m, l.id)))
      return 0; /* an answer to a machine that has gone meanwhile */
    hk_buffer_print(&q->answer, "%s scores it, and is away: the broker has no connection of it", q->machine);
    mail_end(q, 503);
  } else if (l.kind == HK_LETTER_NOTICE) {
    hk_machine_table_take(&m->table, &l);
  } else if (l.kind == HK_LETTER_QUESTION) {
    return c->look.blocked ? 0 : mail_take_up(c, &l);
  } else if ((q = mail_take(m, l.id)) != NULL) {
    hk_buffer_put(&q->answer, l.body, l.size);
    mail_end(q, l.status);
  }
  return 0;
}

static int mail_turn(struct hk_cluster *c)
{
  struct mail *m = c->state;
  uint64_t n;
  const ssize_t size = read(m->wake, &n, sizeof n);
  (void)size;
  if (c->look.blocked) { /* sending now would block this thread until the broker reads again */
    mail_refuse(mail_all_asked(m), "it takes nothing for now");
    while (m->jobs)
      mail_drop_job(c, m->jobs);
    mail_expire(m);
    return hk_cluster_pump(c);
  }
  int status = mail_send(c);
  if (status == 0)
    status = hk_cluster_pump(c);
  if (status == 0)
    status = mail_go_on(c);
  mail_expire(m);
  if (status == 0 && (hk_now() - m->noticed >= EVERY || c->net->mail->version(c->net->mail->arg) != m->version)) {
    status = mail_tell(c, false);
    hk_machine_table_forget(&m->table);
  }
  return status;
}

static void mail_lost(struct hk_cluster *c)
{
  struct mail *m = c->state;
  struct hk_mail_question *open = m->open;
  if (hk_cluster_stops(c) && !c->look.blocked)
    (void)mail_tell(c, true);
  mail_connected(m, false);
  m->open = NULL;
  mail_refuse(open, c->engine->why);
  mail_refuse(mail_all_asked(m), c->engine->why);
  while (m->jobs)
    mail_drop_job(c, m->jobs);
}

static void mail_finish(struct hk_cluster *c)
{
  struct mail *m = c->state;
  if (!m)
    return;
  mail_refuse(mail_all_asked(m), "it ends");
  hk_machine_table_free(&m->table);
  hk_buffer_free(&m->out);
  pthread_mutex_destroy(&m->lock);
  if (m->wake >= 0)
    close(m->wake);
  free(m);
}

static int mail_fd(const struct hk_cluster *c)
{
  return ((const struct mail *)c->state)->wake;
}

const struct hk_cluster_work hk_cluster_mail = { .thread = "mail",
                                                 .as = "a reader of letters",
                                                 .begin = mail_begin,
                                                 .finish = mail_finish,
                                                 .greeted = mail_greeted,
                                                 .lost = mail_lost,
                                                 .came = mail_came,
                                                 .turn = mail_turn,
                                                 .fd = mail_fd,
                                                 .farewell = true };

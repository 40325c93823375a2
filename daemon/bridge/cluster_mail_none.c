/* A daemon without a broker's library has no other machines. */
#include "daemon/bridge/cluster_mail.h"

struct hk_mail_question *hk_mail_ask(struct hk_cluster *mail, const char *machine, const struct hk_buffer *question,
                                     void (*ready)(void *arg), void *arg)
{
  (void)mail;
  (void)machine;
  (void)question;
  (void)ready;
  (void)arg;
  return NULL;
}

unsigned hk_mail_answered(struct hk_mail_question *question, struct hk_buffer *out)
{
  (void)question;
  (void)out;
  return 503;
}

void hk_mail_forget(struct hk_mail_question *question)
{
  (void)question;
}

bool hk_mail_holder(struct hk_cluster *mail, uint32_t partition, struct hk_holder *out)
{
  (void)mail;
  (void)partition;
  (void)out;
  return false;
}

uint32_t hk_mail_machines(struct hk_cluster *mail, bool reports, struct hk_mail_machine out[HK_MAIL_MACHINES])
{
  (void)mail;
  (void)reports;
  (void)out;
  return 0;
}

/* A daemon without libmosquitto: the configuration refuses type = mqtt. */
#include "daemon/notify/send_mqtt.h"

#include <stdio.h>

enum hk_sent hk_send_mqtt(const struct hk_notify_rule *rule, const char *password, const struct hk_notify_message *message,
                          const atomic_bool *quit, struct hk_answer *answer)
{
  (void)rule, (void)password, (void)message, (void)quit;
  snprintf(answer->text, sizeof answer->text, "this hankeld is built without libmosquitto");
  return HK_SENT_LATER;
}

/* hankel cluster. */
#ifndef HK_CLI_CLUSTER_H
#define HK_CLI_CLUSTER_H

/* Returns an exit code. */
int hk_command_cluster(int argc, char **argv);

#endif

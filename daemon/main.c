/* hankeld. */
#include "daemon/server/program.h"

int main(int argc, char **argv)
{
  return hk_program(argc, argv, hk_backend_kinds);
}

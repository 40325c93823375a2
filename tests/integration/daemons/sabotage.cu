/* Preloaded into a program that computes on a GPU, it breaks the device under it, in the program's own context:
 *
 *   SIGUSR1  a kernel writes to an illegal address: CUDA answers every later call with an error
 *   SIGUSR2  a kernel fills the whole device and never ends
 *
 * A thread of its own waits for the signals, so that nothing is launched out of a signal handler. Each is told on standard
 * error once it is done. */
#include <csignal>
#include <cstdio>
#include <pthread.h>

static __global__ void write_astray()
{
  *(volatile int *)16 = 1;
}

static __global__ void spin(volatile int *never)
{
  while (!*never)
    continue;
}

static void *wait_for_signals(void *arg)
{
  const sigset_t *signals = (const sigset_t *)arg;
  int *never = nullptr, number;
  while (sigwait(signals, &number) == 0) {
    cudaError_t failed;
    if (number == SIGUSR1) {
      write_astray<<<1, 1>>>();
      failed = cudaDeviceSynchronize();
    } else {
      cudaDeviceProp properties;
      failed = cudaGetDeviceProperties(&properties, 0);
      if (!failed)
        failed = cudaMallocHost(&never, sizeof *never);
      if (!failed) {
        *never = 0;
        spin<<<properties.multiProcessorCount * 2, 1024>>>(never); /* 2,048 threads on each: no room for another block */
        failed = cudaGetLastError();
      }
    }
    fprintf(stderr, "sabotage %s: %s\n", number == SIGUSR1 ? "astray" : "spin", cudaGetErrorString(failed));
  }
  return nullptr;
}

__attribute__((constructor)) static void begin()
{
  static sigset_t signals;
  pthread_t thread;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr); /* all threads of the program inherit it */
  if (pthread_create(&thread, nullptr, wait_for_signals, &signals) == 0)
    pthread_detach(thread);
}

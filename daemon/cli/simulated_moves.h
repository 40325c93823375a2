/* What simulated pumps and valves do by chance: they are moved now and then, and wander. A part of pipe_simulation.h. chance: of
 * erand48. Thread: the caller's. */
#ifndef HK_SIMULATED_MOVES_H
#define HK_SIMULATED_MOVES_H

/* What is moved from time to time, to anywhere between two ends: it goes to `target` evenly. */
struct hk_simulated_move {
  double now, target, low, high;
  double next; /* s: when it is moved again; INFINITY: never */
};

/* A number of the standard normal distribution. */
double hk_simulated_normal(unsigned short chance[3]);
/* The s from one move to the next, `mean` on the average. */
double hk_simulated_wait(unsigned short chance[3], double mean);
/* Advances by dt, to a time in s. ramp: s that a move from one end to the other takes. mean: s between two moves. */
void hk_simulated_move_on(struct hk_simulated_move *move, double time, double dt, double ramp, double mean,
                          unsigned short chance[3]);
/* Advances what wanders about 0 by dt: its standard deviation, and the s over which it does. */
void hk_simulated_wander(double *value, double spread, double slowly, double dt, unsigned short chance[3]);

#endif

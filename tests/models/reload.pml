/* The protocol by which a shard takes chunks, forgets sensors, reviews them for a reload, and takes snapshots: which of these waits
 * for which. It stands for daemon/scoring/{turn,evict,shard_reload,snapshot_slices}.c and daemon/intake/chunk_pool.c.
 *
 *     loop    chunks and tokens -> lane -> shard       it seals only with an empty chunk at hand, and these come from the shard
 *     evict   SEALING: waits for the token, behind the chunks    FORGETTING: for the loop, a sweep at home, no export on its way
 *     review  waits until no sensors are being forgotten, and for the end of a chunk: then no other is begun (waits)
 *     save    waits for the end of a chunk: no other is begun
 *     sweep   finds silent sensors: eviction, unless a review is under way (put_off: it is repeated before the next review)
 *
 * Each turn is atomic, as each thread's is to the others but for lanes and deliveries. A device takes one turn for what it is given; it
 * may be lost once, and some sensors find no room on the next. With one of these defined a rule of the daemon is taken out, and a property is to fail:
 *   STALE  `waits` is recomputed only where no sensors are being forgotten     GREEDY  eviction does not give way to a review
 *   NEVER  a review stops no chunk    HASTY  a review leaves eviction no turn    SWEEPS  sweeps do not wait for FORGETTING */
#define CHUNKS 2
#define CHUNK 1
#define TOKEN 2

chan lane = [CHUNKS + 2] of { byte };
byte empties = CHUNKS, cur; /* cur: turns that the chunk that is being taken needs still */
bool filled;                  /* loop: its chunk has points */
bool seal, token_due;       /* loop: asked to seal; a token is to follow */
bool token, popped;         /* shard: the token has come; something was taken in this turn */
mtype = { NOBODY, SEALING, FORGETTING, HOME, AWAY, NO, WAITING, FLYING };
mtype retired = NOBODY, sweep = HOME, save = NO;
bool forget, back;          /* the loop is asked to forget; it has */
bool due, put_off;          /* of sweeps */
bool asked, begun, waits;   /* of reloads */
bool crowd;                 /* the review has sensors that are to go */
bool lost;                  /* the device was */

inline retire() { retired = SEALING; seal = true }

inline swept()
{
  sweep = HOME;
  put_off = false;
  if
#ifdef GREEDY
  :: retired == NOBODY -> retire()
#else
  :: retired == NOBODY && !(asked && begun) -> retire()
  :: asked && begun -> put_off = true
#endif
  :: true -> skip /* none is silent */
  fi
}

inline take()
{
  byte what;
  if
  :: cur > 0 ->
     cur--;
     if
     :: cur == 0 -> empties++
     :: else
     fi
  :: else
  fi;
  do
  :: cur == 0 && !waits && save != WAITING && len(lane) > 0 ->
     lane?what;
     popped = true;
     if
     :: what == CHUNK -> cur = 2
     :: else -> token = true
     fi
  :: else -> break
  od;
  what = 0
}

inline evict()
{
  if
  :: retired == SEALING && token -> token = false; retired = FORGETTING; forget = true
  :: else
  fi;
  if
  :: retired == FORGETTING && back && sweep == HOME && save != FLYING -> retired = NOBODY; back = false
  :: else
  fi
}

inline answer() { asked = false; begun = false; due = due || put_off }

inline review()
{
  if
#ifndef HASTY
  :: !begun && put_off
#endif
  :: else ->
     if
     :: begun
     :: else -> begun = true; waits = false; if :: crowd = true :: crowd = false fi
     fi;
#ifdef STALE
     if
     :: retired == NOBODY -> waits = cur > 0
     :: else
     fi;
#elif defined(NEVER)
     waits = false;
#else
     waits = retired == NOBODY && cur > 0;
#endif
     if
     :: retired != NOBODY || cur > 0 /* not now */
     :: else ->
        if
        :: crowd -> crowd = false; retire()
        :: else -> answer()
        fi
     fi
  fi
}

active proctype Shard()
{
  do
  :: atomic {
       popped = false;
       if
       :: !lost && retired == NOBODY -> lost = true; retire()
       :: true
       fi;
       if
       :: sweep == AWAY -> swept()
       :: else
       fi;
       if
       :: save == FLYING -> save = NO
       :: else
       fi;
       if
#ifdef SWEEPS
       :: due && sweep == HOME -> sweep = AWAY; due = false
#else
       :: due && sweep == HOME && retired != FORGETTING -> sweep = AWAY; due = false
#endif
       :: else
       fi;
       take();
       if
       :: save == WAITING && cur == 0 && retired != FORGETTING -> save = FLYING
       :: else
       fi;
       evict();
       if
       :: asked -> review()
       :: else
       fi
     }
  od
}

active proctype Loop()
{
  do
  :: atomic {
       token_due = token_due || seal;
       seal = false;
       back = back || forget;
       forget = false;
       if
       :: filled = true /* points came */
       :: true
       fi;
       if
       :: filled && empties > 0 -> empties--; filled = false; lane!CHUNK
       :: else
       fi;
       if
       :: !filled && token_due -> token_due = false; lane!TOKEN
       :: else
       fi
     }
  od
}

active proctype Second() { do :: atomic { !due -> due = true } od }
active proctype Snapshots() { do :: atomic { save == NO -> save = WAITING } :: break od } /* there may be no more of them */
active proctype Main() { do :: atomic { !asked -> asked = true } od }

ltl reloads { [] (asked -> <> !asked) }
ltl forgets { [] (retired != NOBODY -> <> (retired == NOBODY)) }
ltl chunks { [] (len(lane) > 0 -> <> popped) }
ltl evicts { [] (put_off -> <> !put_off) }

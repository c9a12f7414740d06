/* The data of the simulator's parts.  Each is the business of the file that is
 * named with it.
 */
#ifndef TWINLOG_SIM_PARTS_H
#define TWINLOG_SIM_PARTS_H

#include "core/core.h"
#include "store/store.h"

#define NODES 2
#define CLIENTS 4
#define SECTOR 512u
#define OP_BLOCKS 4u /* most of a read or write */
#define OP_BYTES (OP_BLOCKS * TL_BLOCK)
#define OP_SECTORS (OP_BYTES / SECTOR)
#define OPS 64 /* requests outstanding at most */
#define BLOCKS_MAX 64u
#define SECTORS_MAX (BLOCKS_MAX * TL_BLOCK / SECTOR)
#define SECTORS_PER_BLOCK (TL_BLOCK / SECTOR)
#define MS UINT64_C (1000)

/* What the queue holds. */
enum kind {
  K_WAKE,      /* node; a: generation */
  K_CONNECTED, /* node; a: connection, b: end */
  K_DIAL,      /* a: the node that dials, b: its life */
  K_DIAL_FAILED,
  K_ARRIVE,    /* node; a: connection, b: end it comes from, c: bytes */
  K_FIN,       /* node; a: connection, b: end that is told */
  K_BATCH_END, /* node */
  K_STORED,    /* node; a: 1 if it went well */
  K_QUESTION,  /* a: question; it reaches the arbiter */
  K_ANSWER,    /* node; a: question, b: 1 if nothing comes back */
  K_CLIENT,    /* a: client */
  K_THAW,      /* a: node, b: its life */
  K_COMMAND,   /* node; a: command, b: flags */
  K_RESTART,   /* a: node */
  K_SCHEDULE,
  K_TAKEOVER, /* node */
  K_STRIKE,   /* a: node, b: its life */
  K_LINK,     /* a: of a swizzle, b: until when it is down */
  K_RESUME,   /* node: the rest of a step */
  K_GONE,     /* node: told to stop before, its process ends */
  K_HEAL
};

struct entry {
  uint64_t time;
  uint64_t order;
  uint64_t a, b, c;
  enum kind kind;
  int node;      /* that it happens to, or -1 */
  uint32_t life; /* of that node: a dead process gets nothing */
};

struct queue {
  struct entry *heap;
  size_t n, room;
  uint64_t order;
};

/* One request of a client. */
struct op {
  struct tl_request request; /* first: the core hands it back */
  bool used;
  int client;
  int node;
  uint64_t invoked;
  uint64_t began;   /* the same, but of what this is the later part of */
  uint32_t version; /* of a write or zero; 0: none */
  uint64_t floors[OP_SECTORS]; /* of a read: what it may not fall behind */
  struct op *next, *prev;      /* of the node's, oldest first */
  unsigned char bytes[OP_BYTES];
};

/* A step whose process was stopped before it had carried everything out. */
struct halted {
  struct tl_update update;
  struct tl_event event;
  struct tl_frame frame;
  unsigned next; /* action */
  unsigned char payload[BLOCKS_MAX * TL_BLOCK];
};

struct node {
  int index;
  const char *name;
  bool alive;
  uint32_t life; /* counts starts */
  uint64_t incarnation;
  uint64_t born; /* time of the last start */
  uint64_t died; /* time of the last death */
  bool died_member;
  bool doomed;    /* it dies in its next step */
  bool stopping;  /* it was told to, and its process has not ended yet */
  uint64_t clock; /* what this life's monotonic clock is ahead of ours */
  uint64_t frozen_until;
  uint64_t deaf_until;   /* what the peer sends is not looked at */
  unsigned halting;      /* steps until it stops in the middle of one; 0: not */
  struct halted *halted; /* such a step, NULL: none */
  uint64_t ram_born, ram_died; /* RAM may outlive the process */
  struct tl_kept kept;
  uint64_t kept_map[BLOCKS_MAX / 64 + 1];
  struct tl_core *core;
  struct tl_store *store;

  /* The disk, which outlives the node. */
  bool has_record; /* as a process reads it */
  struct tl_record record;
  bool has_durable; /* as a power cut leaves it */
  struct tl_record durable;
  uint64_t disk_bad_until, disk_slow_until, disk_stuck_until;
  bool misplaced; /* what is there is the other node's */
  bool unacted;   /* no process has acted on it since it was written */

  /* Of this life: */
  bool storing; /* a TL_DO_STORE is under way ... */
  struct tl_record writing;
  bool asking; /* a TL_DO_ASK */
  bool dialling;
  uint64_t wanted; /* by the core, in its own time */
  uint64_t wake;   /* time, UINT64_MAX: none */
  uint64_t wake_generation;
  uint64_t last_wake;
  unsigned spins; /* wakes in a row without time going by */
  uint32_t next_conn;
  uint64_t paced; /* by resync-rate: no chunk before, in its own time */
  uint64_t epoch;
  uint64_t era; /* number of the view in which it became primary */
  uint64_t stored_number, stored_id; /* of the view that it knows is stored */
  uint64_t primary_view;             /* id of that view */
  uint32_t demoted;        /* life in which an operator demoted it, or 0 */
  uint64_t hello_view;     /* of the peer, by its last hello */
  bool counts;             /* it had the data then, or was told a view since */
  uint64_t connected_view; /* id of the last view that the peer shared */
  struct op *first, *last;
  bool forcing; /* it said that it is promoted by force */
  int history;  /* where its last step left it: history.c */
  bool admits;  /* clients, when last asked */
  bool status_valid;
  struct tl_status status;
};

/* Network: network.c */
struct pipe { /* one direction of a connection */
  unsigned char *bytes;
  size_t start, end, room;
  size_t arrived;      /* bytes from start on that the receiver has */
  uint64_t last;       /* time of the last arrival under way */
  uint64_t last_order; /* its insertion, 0: none */
  size_t extra;        /* bytes that joined it */
  bool deaf;           /* what is sent vanishes */
  bool cut;            /* what is under way vanishes */
};

enum end_state { END_WAITING, END_OPEN, END_GONE };

struct end {
  int node;
  uint32_t life;
  uint32_t id; /* by which the core knows it */
  enum end_state state;
  bool fin; /* it is going to be told that the connection is gone */
};

struct conn {
  struct end ends[2];   /* dialler, acceptor */
  struct pipe pipes[2]; /* pipes[i] leads away from ends[i] */
};

/* What is given to a core: stranger.c may have changed it. */
struct strange {
  struct tl_frame frame;
  const unsigned char *payload;
  unsigned times;
  bool changed;
  bool refused; /* it must be */
};

struct network {
  struct conn **conns;
  size_t n, room, live;       /* conns below live are all gone */
  uint64_t down_until[NODES]; /* what that node sends stays under way */
  uint64_t delay_min, delay_max;
  uint64_t slow_until, slow_by; /* and by how much more */
  unsigned corrupt;             /* of 10,000 frames */
  bool corrupted;               /* it has happened */
  unsigned strange;             /* of 1,000 frames, and more of the rare ones */
};

/* Arbiter: arbiter.c */
struct question {
  bool create;
  struct tl_uuid uuid;
  struct tl_view before, after;
  int node;
  uint32_t life;
  bool silent; /* its asker hears nothing */
  bool landed;
  bool answered;
  enum tl_answer result;
  bool known;
  struct tl_uuid uuid_stands;
  struct tl_view stands;
};

struct arbiter {
  bool exists; /* the record */
  struct tl_uuid uuid;
  struct tl_view view;
  uint64_t down_until, slow_until;
  uint64_t astray_until;     /* it looks at another record */
  uint64_t cut_until[NODES]; /* from that node */
  struct question *questions;
  size_t n, room;
  unsigned unknown; /* of 100 answers */
};

/* Oracle: oracle.c */
struct version {  /* what one write or zero leaves in the sectors it covers */
  uint64_t index; /* in the order of the one history */
  uint64_t invoked;
  uint32_t first, count; /* sectors */
  bool zero;
  int history; /* in which it was issued */
};

#define ZEROES 32

struct sector {
  unsigned n_zeroes;
  uint64_t zeroes[ZEROES]; /* indexes of zeroes, no particular order */
  uint64_t forgotten;      /* the highest that had to make room */
};

#define VIEWS 512

/* See history.c.  Of each sector: */
struct history {
  int parent;    /* that it began in, or -1 */
  uint64_t fork; /* number of the last view that they share */
  bool forced;
  int beginner; /* the node whose data it began with */
  uint64_t era; /* of the newest primary, which is number PRIMARY */
  int primary;
  uint64_t acted;      /* number of the newest view that somebody acted in */
  uint64_t ids[VIEWS]; /* of the views that acknowledged, by number */
  uint64_t floor[SECTORS_MAX];  /* the newest acknowledged, or read, version */
  uint64_t base[SECTORS_MAX];   /* what the last promoted node held */
  uint64_t before[SECTORS_MAX]; /* the floor, when that took over */
  uint32_t begun[SECTORS_MAX];  /* the version that the history began with */
};

#define HISTORIES 128
#define VIEWS_KNOWN 1024

struct known_view {
  uint64_t id, number, parent;
  int history;
  bool succeeded; /* another view came after it, in the same history ... */
  uint64_t floor[SECTORS_MAX]; /* ... and what was acknowledged up to it */
};

struct oracle {
  struct version *versions;
  uint32_t n, room;
  uint64_t era; /* of the newest primary in any history */
  uint64_t sequence;
  unsigned promotions;
  struct history histories[HISTORIES];
  unsigned n_histories;
  struct known_view views[VIEWS_KNOWN];
  unsigned n_views;
  struct sector sectors[SECTORS_MAX];
  unsigned n_sectors;
};

/* Clients: clients.c */
struct client {
  int node; /* attached to, or -1 */
  uint64_t epoch;
  unsigned outstanding;
  unsigned depth;
  bool reader; /* it only reads */
};

struct clients {
  struct client client[CLIENTS];
  struct op ops[OPS];
  struct op *free[OPS];
  unsigned n_free;
  uint64_t paused_until; /* they finish and leave */
  int avoided;           /* those who write keep away from this node ... */
  uint64_t avoided_until;
  uint64_t think; /* mean time between requests */
  unsigned outstanding;
  unsigned reads, zeroes; /* percent of requests */
};

/* Faults and operators: setup.c, schedule.c, operators.c, heal.c */
enum fault {
  F_NOTHING,
  F_CRASH_PRIMARY,
  F_CRASH_SECONDARY,
  F_STOP,
  F_CUT,
  F_DOWN,
  F_ONE_WAY,
  F_FREEZE,
  F_DISK,
  F_ARBITER,
  F_MEDDLE,
  F_PAUSE,
  F_TAKEOVER,
  F_HALT,
  F_DEAFEN,
  F_SLOW,
  F_SWIZZLE,
  F_CLOCK,
  FAULTS
};

struct command {
  bool used;
  enum tl_command command;
  unsigned flags;
  int node;
  uint32_t life;
  uint64_t sent;
};

#define COMMANDS 16

enum heal_stage {
  HEAL_NO,
  HEAL_RESTORE, /* service and both copies are to come back */
  HEAL_READ,    /* every block is read */
  HEAL_VERIFY,  /* verify finds no difference ... */
  HEAL_ROT,     /* ... and one that was planted */
  HEAL_DONE
};

struct schedule {
  uint64_t quiet_until; /* no fault before */
  uint64_t rotten; /* bytes of the blocks that verify is to find different */
  bool put_off;    /* that verify is to be asked for again */
  uint64_t events_wanted;
  uint64_t pace; /* mean time between faults */
  int creator;   /* the node that create is sent to */
  bool alone;    /* create --alone */
  bool early;    /* faults before the volume exists */
  unsigned aim;  /* percent of the telling moments that are used */
  bool reckless; /* the last copy may be taken */
  bool created;
  uint64_t created_at;
  unsigned weights[FAULTS];
  struct command commands[COMMANDS];
  int demote_next; /* node to be promoted after a demotion, or -1 */
  enum heal_stage stage;
  uint64_t heal_since, heal_until;
  unsigned heal_tries;
  uint64_t split_since; /* 0: no split brain is known */
  int loser;            /* of it */
  bool forced;          /* the last resort was taken */
  unsigned final_next;  /* block to be read next */
  unsigned final_reads; /* not yet answered */
  unsigned final_failed;
  unsigned restored; /* times that all began again */
};

#endif

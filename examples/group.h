/* SPDX-License-Identifier: 0BSD */
/* One sync for many threads, of a table with config.lock and IDEM_BATCH.

       static group all = GROUP_INITIALIZER;   // for each table, at its opening

       answer = idem_begin(&table, ...);       // whatever it answers
       if (group_sync(&all, &table) != IDEM_OK)
           ...                                 // neither execute nor answer
       // the effect
       result = idem_complete(&table, ...);
       if (group_sync(&all, &table) != IDEM_OK)
           ...                                 // report nothing as done

   group_sync returns when all records written before the call are durable.  The
   first thread to come leads: it syncs for all that have come by then.  A
   thread that comes during a sync waits for the next one.  If a sync fails, it
   fails for all that wait for it.  After IDEM_E_STORAGE open the table again,
   and begin with a new group.  Do not cancel a thread in group_sync: the others
   would wait for ever. */
#ifndef GROUP_H
#define GROUP_H

#include "idem.h"
#include <pthread.h>
#include <sched.h>

typedef struct group {
    pthread_mutex_t mutex;      /* another one than the table's */
    pthread_cond_t  ended;      /* a sync has */
    uint64_t came;              /* threads so far; the next has this number */
    uint64_t served, durable;   /* lower numbers had their sync; one that was
                                   done */
    int      leading;           /* 1: a thread is syncing */
    int      result;            /* of the last sync that failed */
} group;

#define GROUP_INITIALIZER                                                      \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0 }

/* Syncs for all who have come, and for those who come while others let them.
   The mutex is held, but for that and the sync. */
static inline void group_lead(group *g, idem_table *table)
{
    uint64_t came;
    int result;

    g->leading = 1;
    do {
        came = g->came;
        pthread_mutex_unlock(&g->mutex);
        sched_yield();
        pthread_mutex_lock(&g->mutex);
    } while (g->came != came);
    pthread_mutex_unlock(&g->mutex);
    result = idem_sync(table);
    pthread_mutex_lock(&g->mutex);
    g->leading = 0;
    g->served = came;
    if (result == IDEM_OK)
        g->durable = came;
    else
        g->result = result;
    pthread_cond_broadcast(&g->ended);
}

/* Answers as idem_sync does. */
static inline int group_sync(group *g, idem_table *table)
{
    uint64_t mine;
    int result;

    pthread_mutex_lock(&g->mutex);
    mine = g->came++;
    while (g->served <= mine)
        if (g->leading)
            pthread_cond_wait(&g->ended, &g->mutex);
        else
            group_lead(g, table);
    result = mine < g->durable ? IDEM_OK : g->result;
    pthread_mutex_unlock(&g->mutex);
    return result;
}

#endif

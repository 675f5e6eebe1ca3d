/* SPDX-License-Identifier: 0BSD */
/* What is known of a record that was taken apart, said so that the value
 * analysis can use it: it takes the contract of idemi_record_decode instead of
 * the code, but makes nothing of a promise that depends on what parts there
 * are.  Here each such promise is a condition that is never met, as WP proves:
 * behind all that a record has stand the four bytes of its check.
 */
#ifdef EVA
/*@ assigns \nothing;
    ensures \false; */
#else
/*@ requires \false;
    assigns \nothing; */
#endif
void never(void);

/*@ requires placed(t, at) && \valid(t->journal) && 1 <= t->capacity;
    requires \valid_read(t->config) && \valid_read(t->config->storage);
    requires \base_addr(start) == \base_addr(p) && start <= p;
    requires p - start + have <= 0xFFFFFFFF;
    requires \valid_read(p + (0 .. have - 1));
    requires \separated(t, t->config, t->journal, p + (0 .. have - 1)); */
static uint32_t decoded(idem_table *t, uint32_t at, const unsigned char *start,
                        const unsigned char *p, uint32_t have)
{
    const idem_record *r = &t->journal->record;
    uint32_t len = idemi_record_decode(t, at, start, p, have);
    uint64_t from = (uint64_t)(p - start), to = from + len - 4;

#ifdef EVA
    eva_record = 0;
#endif
    if (len == 0)
        return 0;
    //@ split r->parts & 7;
    if (r->parts & IDEMI_HAS_CLAIM) {
        if (r->body.key_len < 1 ||
            r->body.scope_len + r->body.key_len > t->config->key_max)
            never();
        if (r->id_at < from || r->id_at >= to)
            never();
        if (r->body.response_len > t->config->response_max)
            never();
    }
    if (r->parts & IDEMI_HAS_STATE) {
        if (r->state_len > t->config->state_max)
            never();
        if (r->state_at < from || r->state_at > to)
            never();
    }
    if (r->parts & IDEMI_HAS_OUTCOME) {
        if (r->body.response_len > t->config->response_max)
            never();
        if (r->response_at < from || r->response_at > to)
            never();
    }
#ifdef EVA
    //@ split r->slot;
    eva_record = 1 + (r->parts & 7u) + 8 * r->slot;
#endif
    return len;
}

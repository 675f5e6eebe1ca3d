/* SPDX-License-Identifier: 0BSD */
/* Bytes that are read are any.  That those are read one by one if that fails,
   and stay where they belong, bytes.c shows: here it is states without end. */
static void idemi_reading_read(idem_table *t, uint32_t at, unsigned char *dst,
                               uint32_t len)
{
    if (idemi_storage_read(t, at, dst, len) != IDEM_OK)
        Frama_C_make_unknown((char *)dst, len);
}

/* SPDX-License-Identifier: 0BSD
   Included before a test: every call of the library ends with idem_check, and
   a broken invariant ends the test.  Misuse, an assertion of the form !"...",
   does not: the tests commit it on purpose. */
void abort(void);       /* no header before the test's feature macros */

#define IDEM_DEBUG
#define IDEM_ASSERT(x) ((x) || #x[0] == '!' ? (void)0 : abort())

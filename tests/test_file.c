/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that a journal's file is made whole or not at all, is one opening's
 * alone, says what the system refused and touches nothing that it refuses (F1
 * to F5 of >>file); and that a table in it keeps its promises (S1 to S4, S7)
 * whatever system call fails, is interrupted, does half, or is the last.
 *
 * The implementation's system calls go through a kernel of our own, which can
 * fail one, cut it short, run something else before it, or let the process die
 * there: what is open is closed, as by kill -9, and the test goes on.  It does
 * not sync.  What needs real processes, signals and syncs is in tests/file.sh.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------
   the kernel
   ------------------------------------------------------------------------ */

enum {
    OPEN = 1, CLOSE = 2, READ = 4, WRITE = 8, SYNC = 16, LOCK = 32, LINK = 64,
    UNLINK = 128, STAT = 256, TRUNCATE = 512, ADVISE = 1024, ALL = 2047
};

// ELSEWHERE: a file is told to be on another file system.
enum { NOTHING, FAIL, FAIL_ON, HALF, ZERO, DIE, ASIDE, ELSEWHERE };

#define CALLS_KEPT 200

// A simulated process: what happens to it, and what it has open.
struct process {
    int which;                  // calls that are counted
    unsigned count;
    unsigned at;                // the number of the call at which ..
    int fault;                  // .. this happens
    int error;
    void (*aside)(void);
    int fds[8];
    unsigned fd_count;
    jmp_buf death;
};

static struct process calm;
static struct process *me = &calm;

static int synced;              // syncs that succeeded
static int dropped;             // times the cache was told to forget
static int history[CALLS_KEPT]; // calls, in their order
static unsigned history_len;

static int strike(int call)
{
    struct process *self = me;

    history[history_len++ % CALLS_KEPT] = call;
    if (!(self->which & call) || self->count++ < self->at)
        return NOTHING;
    if (self->fault == FAIL_ON) {
        errno = self->error;
        return FAIL;
    }
    if (self->count != self->at + 1)
        return NOTHING;
    if (self->fault == DIE)
        longjmp(self->death, 1);
    if (self->fault == ASIDE) {
        me = &calm;
        self->aside();
        me = self;
        return NOTHING;
    }
    errno = self->error;
    return self->fault;
}

static int kernel_open(const char *path, int flags, ...)
{
    va_list mode;
    int fd;

    if (strike(OPEN) == FAIL)
        return -1;
    va_start(mode, flags);
    fd = open(path, flags, flags & O_CREAT ? va_arg(mode, int) : 0);
    va_end(mode);
    if (fd >= 0 && me != &calm && me->fd_count < 8)
        me->fds[me->fd_count++] = fd;
    return fd;
}

static int kernel_close(int fd)
{
    int fault = strike(CLOSE);
    int error = errno;
    unsigned i;

    for (i = 0; i < me->fd_count; i++)
        if (me->fds[i] == fd)
            me->fds[i--] = me->fds[--me->fd_count];
    if (close(fd) < 0)
        return -1;
    errno = error;
    return fault == FAIL ? -1 : 0;
}

static ssize_t kernel_pread(int fd, void *dst, size_t len, off_t at)
{
    switch (strike(READ)) {
    case FAIL: return -1;
    case HALF: return pread(fd, dst, (len + 1) / 2, at);
    case ZERO: return 0;
    default:   return pread(fd, dst, len, at);
    }
}

static ssize_t kernel_pwrite(int fd, const void *src, size_t len, off_t at)
{
    switch (strike(WRITE)) {
    case FAIL: return -1;
    case HALF: return pwrite(fd, src, (len + 1) / 2, at);
    case ZERO: return 0;
    default:   return pwrite(fd, src, len, at);
    }
}

static int kernel_sync(int fd)
{
    if (strike(SYNC) == FAIL || fcntl(fd, F_GETFD) < 0)
        return -1;
    synced++;
    return 0;
}

static int kernel_flock(int fd, int operation)
{
    return strike(LOCK) == FAIL ? -1 : flock(fd, operation);
}

static int kernel_link(const char *from, const char *to)
{
    return strike(LINK) == FAIL ? -1 : link(from, to);
}

static int kernel_unlink(const char *path)
{
    return strike(UNLINK) == FAIL ? -1 : unlink(path);
}

static int kernel_stat(const char *path, struct stat *is)
{
    int fault = strike(STAT);

    if (fault == FAIL || stat(path, is) < 0)
        return -1;
    is->st_dev += fault == ELSEWHERE;
    return 0;
}

static int kernel_fstat(int fd, struct stat *is)
{
    return strike(STAT) == FAIL ? -1 : fstat(fd, is);
}

static int kernel_ftruncate(int fd, off_t size)
{
    return strike(TRUNCATE) == FAIL ? -1 : ftruncate(fd, size);
}

static int kernel_fadvise(int fd, off_t at, off_t len, int advice)
{
    if (strike(ADVISE) == FAIL)
        return EINVAL;
    if (at == 0 && len == 0 && advice == POSIX_FADV_DONTNEED)
        dropped++;
    return fcntl(fd, F_GETFD) < 0 ? EBADF : 0;
}

#define open(...) kernel_open(__VA_ARGS__)
#define close(fd) kernel_close(fd)
#define pread(fd, dst, len, at) kernel_pread(fd, dst, len, at)
#define pwrite(fd, src, len, at) kernel_pwrite(fd, src, len, at)
#define fsync kernel_sync
#define fdatasync kernel_sync
#define flock(fd, operation) kernel_flock(fd, operation)
#define link(from, to) kernel_link(from, to)
#define unlink(path) kernel_unlink(path)
#define stat(path, is) kernel_stat(path, is)
#define fstat(fd, is) kernel_fstat(fd, is)
#define ftruncate(fd, size) kernel_ftruncate(fd, size)
#define posix_fadvise(fd, at, len, advice) kernel_fadvise(fd, at, len, advice)

// Misuse is counted, and refused all the same.
static int asserted;
#define IDEM_ASSERT(x) ((x) ? (void)0 : (void)asserted++)
#define IDEM_FILE_STORAGE
#define IDEM_IMPLEMENTATION
#include "idem.h"

#undef open
#undef close
#undef pread
#undef pwrite
#undef fsync
#undef fdatasync
#undef flock
#undef link
#undef unlink
#undef stat
#undef fstat
#undef ftruncate
#undef posix_fadvise

#include "fixture.h"

static struct process *expected = &calm;

/* From here on `fault` happens at call number `at` of those in `which`. */
static void expect_fault(struct process *p, int which, unsigned at, int fault,
                         int error)
{
    memset(p, 0, sizeof *p);
    p->which = which;
    p->at = at;
    p->fault = fault;
    p->error = error;
    me = expected = p;
}

/* No more of it; whether it has happened. */
static int struck(void)
{
    me = &calm;
    return expected->count > expected->at;
}

/* What the system does with what a process that died has open. */
static void bury(struct process *p)
{
    me = &calm;
    while (p->fd_count)
        (void)close(p->fds[--p->fd_count]);
}

/* ---------------------------------------------------------------------------
   files
   ------------------------------------------------------------------------ */

// Two blocks of zeros, the second incomplete.
enum { SECTOR = 512, SECTORS = 10, SIZE = SECTOR * SECTORS };

static char dir[256];
static char path[300];
static char unborn[300];
static idem_file file, other;

static int descriptors(void)
{
    int fd, count = 0;

    for (fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int descriptors_before;

/* An empty directory. */
static int setup(void **state)
{
    const char *parent = getenv("TMPDIR");

    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/idem-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/journal", dir);
    (void)snprintf(unborn, sizeof unborn, "%s/journal.new", dir);
    memset(&file, 0, sizeof file);
    memset(&other, 0, sizeof other);
    me = &calm;
    dropped = 0;
    history_len = 0;
    asserted = 0;
    descriptors_before = descriptors();
    return 0;
}

/* The same, in a fixture whose table is to be opened. */
static int setup_table(void **state)
{
    return fixture_setup(state) < 0 ? -1 : setup(NULL);
}

/* No descriptor may be lost. */
static int teardown(void **state)
{
    DIR *listing = opendir(dir);
    struct dirent *entry;
    char name[600];

    (void)state;
    me = &calm;
    (void)(file.storage.ctx && idem_file_close(&file));
    (void)(other.storage.ctx && idem_file_close(&other));
    if (!listing)
        return -1;
    while ((entry = readdir(listing)) != NULL) {
        (void)snprintf(name, sizeof name, "%s/%s", dir, entry->d_name);
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            (void)remove(name);
    }
    (void)closedir(listing);
    return rmdir(dir) < 0 || descriptors() != descriptors_before ? -1 : 0;
}

static int teardown_table(void **state)
{
    return teardown(NULL) < 0 ? -1 : fixture_teardown(state);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TABLE_TEST(name)                                                       \
    cmocka_unit_test_setup_teardown(name, setup_table, teardown_table)

static int open_file(idem_file *f)
{
    return idem_file_open(f, path, SECTOR, SECTORS);
}

static int there(const char *name)
{
    struct stat is;

    return lstat(name, &is) == 0;
}

static void write_whole(const char *name, const void *bytes, size_t len)
{
    FILE *out = fopen(name, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    assert_int_equal(fclose(out), 0);
}

/* The length; at most `size` bytes are copied. */
static size_t read_whole(const char *name, void *bytes, size_t size)
{
    FILE *in = fopen(name, "rb");
    size_t len;

    assert_non_null(in);
    len = fread(bytes, 1, size, in);
    while (fgetc(in) != EOF)
        len++;
    (void)fclose(in);
    return len;
}

/* A file of `len` bytes that are not those of any journal. */
static void write_foreign(const char *name, size_t len)
{
    unsigned char bytes[2 * SIZE];

    memset(bytes, 'f', sizeof bytes);
    write_whole(name, bytes, len);
}

static void assert_foreign(const char *name, size_t len)
{
    unsigned char bytes[2 * SIZE];
    size_t i;

    assert_int_equal(read_whole(name, bytes, sizeof bytes), len);
    for (i = 0; i < len; i++)
        assert_int_equal(bytes[i], 'f');
}

/* The file is whole, has one name, and begins with `first` and zeros. */
static void assert_born(unsigned char first)
{
    unsigned char bytes[SIZE];
    struct stat is;
    size_t i;

    assert_int_equal(stat(path, &is), 0);
    assert_int_equal(is.st_nlink, 1);
    assert_false(there(unborn));
    assert_int_equal(read_whole(path, bytes, sizeof bytes), SIZE);
    assert_int_equal(bytes[0], first);
    for (i = 1; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], 0);
}

static int prog_byte(idem_file *f, unsigned char byte)
{
    return f->storage.prog(f->storage.ctx, 0, &byte, 1);
}

/* ---------------------------------------------------------------------------
   one file
   ------------------------------------------------------------------------ */

static void a_new_file_is_zeros_and_the_owners(void **state)
{
    struct stat is;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(file.error, 0);
    assert_born(0);
    assert_int_equal(stat(path, &is), 0);
    assert_int_equal(is.st_mode & 0777, 0600);
    assert_true(is.st_blocks * 512 >= SIZE);            // no holes
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_born(0);
}

/* F1 and F3, of which a process that is killed sees nothing. */
static void a_file_is_synced_before_it_is_linked_and_its_name_too(void **state)
{
    unsigned i, linked = 0, written = 0, when[4] = { 0 }, syncs = 0;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    for (i = 0; i < history_len; i++) {
        written = history[i] == WRITE ? i : written;
        linked = history[i] == LINK ? i : linked;
        if (history[i] == SYNC && syncs < COUNT(when))
            when[syncs++] = i;
    }
    assert_int_equal(syncs, 3);         // zeros; what was there; the name
    assert_true(written < when[0] && when[0] < linked);
    assert_true(linked < when[1]);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    history_len = 0;
    assert_int_equal(open_file(&file), IDEM_OK);
    for (i = 0, syncs = 0; i < history_len; i++)
        syncs += history[i] == SYNC;
    assert_int_equal(syncs, 2);         // also if somebody else has made it
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

static void the_medium_is_in_place_and_of_single_bytes(void **state)
{
    const idem_storage *s = &file.storage;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_ptr_equal(s->ctx, &file);
    assert_non_null(s->read);
    assert_non_null(s->prog);
    assert_non_null(s->sync);
    assert_null(s->erase);
    assert_null(s->erasing);
    assert_int_equal(s->sector_size, SECTOR);
    assert_int_equal(s->sector_count, SECTORS);
    assert_int_equal(s->prog_size, 1);
    assert_int_equal(s->erased, 0);
    assert_int_equal(s->verify, 0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

static void what_is_programmed_is_read_also_after_reopening(void **state)
{
    const idem_storage *s = &file.storage;
    char text[16];
    uint32_t at;

    (void)state;
    for (at = 0; at + 6 <= SIZE; at += 1017) {
        assert_int_equal(open_file(&file), IDEM_OK);
        assert_int_equal(s->prog(s->ctx, at, "first", 6), 0);
        assert_int_equal(s->prog(s->ctx, at + 1, "IRS", 3), 0);
        assert_int_equal(s->sync(s->ctx), 0);
        assert_int_equal(s->read(s->ctx, at, text, 6), 0);
        assert_string_equal(text, "fIRSt");
        assert_int_equal(idem_file_close(&file), IDEM_OK);
        assert_int_equal(open_file(&file), IDEM_OK);
        assert_int_equal(s->read(s->ctx, at, text, 6), 0);
        assert_string_equal(text, "fIRSt");
        assert_int_equal(idem_file_close(&file), IDEM_OK);
    }
}

static void a_read_beyond_the_end_fails(void **state)
{
    const idem_storage *s = &file.storage;
    char bytes[8];

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(s->read(s->ctx, SIZE - 8, bytes, 8), 0);
    assert_int_equal(s->read(s->ctx, SIZE - 7, bytes, 8), EIO);
    assert_int_equal(s->read(s->ctx, SIZE, bytes, 1), EIO);
    assert_int_equal(truncate(path, 100), 0);           // by somebody else
    assert_int_equal(s->read(s->ctx, 92, bytes, 8), 0);
    assert_int_equal(s->read(s->ctx, 96, bytes, 8), EIO);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(open_file(&file), IDEM_E_FORMAT);
}

static void impossible_arguments_are_refused(void **state)
{
    static const uint32_t sizes[][2] = {
        { 0, 10 }, { 255, 10 }, { 262145, 10 }, { UINT32_MAX, 3 }, { 512, 0 },
        { 512, 65536 }, { 512, UINT32_MAX }, { 262144, 16384 },
        { 262144, 16385 }, { UINT32_MAX, UINT32_MAX },
    };
    size_t i;

    (void)state;
    assert_int_equal(idem_file_open(NULL, path, SECTOR, SECTORS), IDEM_E_ARG);
    assert_int_equal(idem_file_open(&file, NULL, SECTOR, SECTORS), IDEM_E_ARG);
    for (i = 0; i < COUNT(sizes); i++)
        assert_int_equal(
            idem_file_open(&file, path, sizes[i][0], sizes[i][1]), IDEM_E_ARG);
    assert_int_equal(idem_file_close(NULL), IDEM_E_ARG);
    memset(&file, 0, sizeof file);
    assert_int_equal(idem_file_close(&file), IDEM_E_ARG);   // never opened
    assert_int_equal(asserted, 4 + COUNT(sizes));
    assert_false(there(path));
}

static void a_closed_file_touches_nothing(void **state)
{
    const idem_storage *s = &file.storage;
    char byte = 0;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(s->read(s->ctx, 0, &byte, 1), EBADF);
    assert_int_equal(s->prog(s->ctx, 0, &byte, 1), EBADF);
    assert_int_equal(s->sync(s->ctx), EBADF);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(asserted, 0);
    // One that was refused is closed likewise.
    write_foreign(path, SIZE + 1);
    assert_int_equal(open_file(&file), IDEM_E_FORMAT);
    assert_int_equal(s->read(s->ctx, 0, &byte, 1), EBADF);
    assert_int_equal(s->prog(s->ctx, 0, &byte, 1), EBADF);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

/* ---------------------------------------------------------------------------
   one opening at a time
   ------------------------------------------------------------------------ */

/* Runs the function in another process; what it returns. */
static int elsewhere(int (*function)(void))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0)
        _exit(function());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int open_other(void)
{
    return open_file(&other);
}

static void a_second_opening_is_refused(void **state)
{
    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(open_file(&other), IDEM_E_LOCK);
    assert_int_equal((int8_t)elsewhere(open_other), IDEM_E_LOCK);
    assert_int_not_equal(prog_byte(&other, 'x'), 0);
    assert_int_equal(idem_file_close(&other), IDEM_OK);
    assert_int_equal(open_file(&other), IDEM_E_LOCK);   // the first is not hurt
    assert_int_equal(prog_byte(&file, 'a'), 0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(elsewhere(open_other), IDEM_OK);   // dies with it open
    assert_int_equal(open_file(&other), IDEM_OK);
    assert_int_equal(idem_file_close(&other), IDEM_OK);
    assert_born('a');
}

/* In a child of the process that opened `file`; the number of what is wrong. */
static int misbehave(void)
{
    const idem_storage *s = &file.storage;
    char byte = 'c';

    if (s->read(s->ctx, 0, &byte, 1) != EPERM || byte != 'c')
        return 1;
    if (s->prog(s->ctx, 0, &byte, 1) != EPERM)
        return 2;
    if (s->sync(s->ctx) != EPERM)
        return 3;
    if (open_other() != IDEM_E_LOCK)
        return 4;
    if (idem_file_close(&file) != IDEM_OK)
        return 5;
    if (open_other() != IDEM_E_LOCK)          // the parent still has the lock
        return 6;
    return 0;
}

static void a_child_touches_nothing_and_does_not_unlock(void **state)
{
    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(elsewhere(misbehave), 0);
    assert_int_equal(open_file(&other), IDEM_E_LOCK);
    assert_int_equal(prog_byte(&file, 'p'), 0);
    assert_int_equal(file.storage.sync(file.storage.ctx), 0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_born('p');
}

/* A child that lives until it is told to go on, twice. */
struct child {
    pid_t pid;
    int tell[2];
    int hear[2];
};

static void child_make(struct child *c)
{
    assert_int_equal(pipe(c->tell), 0);
    assert_int_equal(pipe(c->hear), 0);
    c->pid = fork();
    assert_true(c->pid >= 0);
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Waits in the child for child_go, or for the end of its parent. */
static void child_wait(struct child *c)
{
    char byte = 0;

    close_end(&c->tell[1]);
    if (write(c->hear[1], &byte, 1) != 1 || read(c->tell[0], &byte, 1) != 1)
        _exit(9);
}

/* Waits until the child waits. */
static void child_meet(struct child *c)
{
    char byte;

    close_end(&c->hear[1]);
    assert_int_equal(read(c->hear[0], &byte, 1), 1);
}

static void child_go(struct child *c)
{
    assert_int_equal(write(c->tell[1], "", 1), 1);
}

static void child_unmake(struct child *c)
{
    close_end(&c->tell[0]);
    close_end(&c->tell[1]);
    close_end(&c->hear[0]);
}

static void closing_unlocks_though_a_child_lives(void **state)
{
    struct child c;
    int status;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    child_make(&c);
    if (c.pid == 0) {
        child_wait(&c);
        _exit(prog_byte(&file, 'c') == EPERM ? 0 : 1);
    }
    child_meet(&c);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(open_file(&other), IDEM_OK);
    child_go(&c);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_int_equal(status, 0);
    assert_int_equal(open_file(&file), IDEM_E_LOCK);
    assert_int_equal(idem_file_close(&other), IDEM_OK);
    assert_born(0);
    child_unmake(&c);
}

/* What the contract warns of, and the way out that it names. */
static void a_child_keeps_a_dead_parents_lock_until_it_closes(void **state)
{
    struct child c;
    int status;

    (void)state;
    child_make(&c);
    if (c.pid == 0) {
        if (open_file(&file) != IDEM_OK)
            _exit(1);
        if (fork() != 0)
            _exit(0);
        child_wait(&c);                     // now the parent is dead
        (void)idem_file_close(&file);
        child_wait(&c);
        _exit(0);
    }
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_int_equal(status, 0);
    child_meet(&c);
    assert_int_equal(open_file(&other), IDEM_E_LOCK);
    child_go(&c);
    child_meet(&c);
    assert_int_equal(open_file(&other), IDEM_OK);
    assert_int_equal(idem_file_close(&other), IDEM_OK);
    child_go(&c);
    child_unmake(&c);
}

static void an_exec_closes_the_file(void **state)
{
    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(fcntl(file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

/* ---------------------------------------------------------------------------
   what is not ours
   ------------------------------------------------------------------------ */

static void a_file_of_another_size_is_not_touched(void **state)
{
    static const size_t sizes[] = { 0, 1, SIZE - 1, SIZE + 1, 2 * SIZE };
    struct stat before, after;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(sizes); i++) {
        write_foreign(path, sizes[i]);
        assert_int_equal(stat(path, &before), 0);
        assert_int_equal(open_file(&file), IDEM_E_FORMAT);
        assert_foreign(path, sizes[i]);
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
        assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
        assert_false(there(unborn));
        assert_int_equal(open_file(&other), IDEM_E_FORMAT);     // not locked
    }
}

static void only_a_regular_file_is_a_journal(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(open_file(&file), IDEM_E_FORMAT);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_fault(&calm, OPEN, 1000, NOTHING, 0);
    assert_int_equal(open_file(&file), IDEM_E_FORMAT);
    assert_int_equal(calm.count, 0);            // being opened is an event
    memset(&calm, 0, sizeof calm);
    assert_int_equal(remove(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(open_file(&file), IDEM_E_FORMAT);
    assert_false(there(unborn));
}

static void a_symbolic_link_is_followed_but_not_made_a_file(void **state)
{
    char real[320];

    (void)state;
    (void)snprintf(real, sizeof real, "%s/real", dir);
    assert_int_equal(symlink(real, path), 0);
    assert_int_equal(open_file(&file), IDEM_E_STORAGE);
    assert_int_equal(file.error, ENOENT);
    assert_false(there(unborn));
    assert_false(there(real));
    assert_int_equal(idem_file_open(&file, real, SECTOR, SECTORS), IDEM_OK);
    assert_int_equal(open_file(&other), IDEM_E_LOCK);   // the lock is the same
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

/* In another process, so that root may become somebody else. */
static int open_unprivileged(void)
{
    if (getuid() == 0 && (chown(dir, 65534, 65534) < 0 ||
                          (there(path) && chown(path, 65534, 65534) < 0) ||
                          setgid(65534) < 0 || setuid(65534) < 0))
        return 99;
    return open_file(&file) == IDEM_E_STORAGE ? file.error : 98;
}

static void what_the_system_refuses_is_told(void **state)
{
    (void)state;
    assert_int_equal(chmod(dir, 0500), 0);      // not to be created in
    assert_int_equal(elsewhere(open_unprivileged), EACCES);
    assert_int_equal(chmod(dir, 0700), 0);
    write_foreign(path, SIZE);
    assert_int_equal(chmod(path, 0400), 0);     // not to be written
    assert_int_equal(elsewhere(open_unprivileged), EACCES);
    assert_foreign(path, SIZE);
    assert_int_equal(remove(path), 0);
    assert_int_equal(chmod(dir, 0300), 0);      // not to be synced
    assert_int_equal(elsewhere(open_unprivileged), EACCES);
    assert_int_equal(chmod(dir, 0700), 0);
    (void)remove(path);

    assert_true(idem_file_open(&file, "", SECTOR, SECTORS) < 0);
    (void)snprintf(path, sizeof path, "%s/none/journal", dir);
    assert_int_equal(open_file(&file), IDEM_E_STORAGE);
    assert_int_equal(file.error, ENOENT);
    assert_false(there(unborn));
}

static void a_path_may_be_long_but_not_too_long(void **state)
{
    char name[5000];
    size_t len = strlen(dir);

    (void)state;
    // "dir/./././journal": as long as the system takes, with ".new" and zero
    memcpy(name, dir, len);
    for (; len < 4080; len += 2)
        memcpy(name + len, "/.", 2);
    name[len++] = '/';
    memset(name + len, 'j', sizeof name - len);
    name[4091] = 0;
    assert_int_equal(idem_file_open(&file, name, SECTOR, SECTORS), IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    name[4091] = 'j';
    name[4092] = 0;
    assert_int_equal(idem_file_open(&file, name, SECTOR, SECTORS),
                     IDEM_E_STORAGE);
    assert_int_equal(file.error, ENAMETOOLONG);
    name[4092] = 'j';
    name[4999] = 0;
    assert_int_equal(idem_file_open(&file, name, SECTOR, SECTORS),
                     IDEM_E_STORAGE);
    assert_int_equal(file.error, ENAMETOOLONG);
    // No room for ".new" in the last name: only if there is no file yet
    len = (size_t)snprintf(name, sizeof name, "%s/", dir);
    memset(name + len, 'n', 255);
    name[len + 255] = 0;
    assert_int_equal(idem_file_open(&file, name, SECTOR, SECTORS),
                     IDEM_E_STORAGE);
    assert_int_equal(file.error, ENAMETOOLONG);
    write_foreign(name, SIZE);
    assert_int_equal(idem_file_open(&file, name, SECTOR, SECTORS), IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

static void a_path_may_be_relative(void **state)
{
    char before[1024];

    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(idem_file_open(&file, "journal", SECTOR, SECTORS),
                     IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(chdir(before), 0);
    assert_born(0);
}

/* ---------------------------------------------------------------------------
   creators that die, and creators that meet
   ------------------------------------------------------------------------ */

static void what_a_dead_creator_left_is_made_new(void **state)
{
    static const size_t sizes[] = { 0, 1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE };
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(sizes); i++) {
        write_foreign(unborn, sizes[i]);
        assert_int_equal(open_file(&file), IDEM_OK);
        assert_born(0);
        assert_int_equal(idem_file_close(&file), IDEM_OK);
        assert_int_equal(remove(path), 0);
    }
}

static void a_second_name_is_removed_and_its_file_kept(void **state)
{
    char backup[320];

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(prog_byte(&file, 'a'), 0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(link(path, unborn), 0);
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_born('a');
    assert_int_equal(idem_file_close(&file), IDEM_OK);

    // The path gone, and the file still somebody's: it is not made zeros.
    (void)snprintf(backup, sizeof backup, "%s/backup", dir);
    assert_int_equal(rename(path, backup), 0);
    assert_int_equal(link(backup, unborn), 0);
    (void)open_file(&file);
    (void)idem_file_close(&file);
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_born(0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_int_equal(rename(backup, path), 0);
    assert_born('a');

    // Another name of ours than path.new, or path.new of another file
    assert_int_equal(link(path, backup), 0);
    write_foreign(unborn, 10);
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_true(there(backup));
    assert_foreign(unborn, 10);
}

static void a_living_creator_is_left_alone(void **state)
{
    int fd;

    (void)state;
    write_foreign(unborn, SIZE);
    fd = open(unborn, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(open_file(&file), IDEM_E_LOCK);
    assert_foreign(unborn, SIZE);
    assert_false(there(path));
    (void)close(fd);
}

static void a_symbolic_link_is_not_made_a_journal(void **state)
{
    char precious[320];

    (void)state;
    (void)snprintf(precious, sizeof precious, "%s/precious", dir);
    write_foreign(precious, 10);
    assert_int_equal(symlink(precious, unborn), 0);
    assert_int_equal(open_file(&file), IDEM_E_STORAGE);
    assert_int_equal(file.error, ELOOP);
    assert_foreign(precious, 10);
    assert_false(there(path));
}

/* A process that opens the file and dies at call number `at`, or does not. */
static int opens_until(unsigned at)
{
    static struct process p;
    static idem_file its;

    expect_fault(&p, ALL, at, DIE, 0);
    if (setjmp(p.death) != 0) {
        bury(&p);
        return 1;
    }
    assert_int_equal(open_file(&its), IDEM_OK);
    bury(&p);
    return 0;
}

static void creation_may_die_at_every_call(void **state)
{
    unsigned at, again;
    int alive = 0;

    (void)state;
    for (at = 0; !alive; at++) {
        // .. and once more while what was left is cleared up.
        for (again = 0; ; again++) {
            int again_alive;

            (void)remove(path);
            (void)remove(unborn);
            alive = !opens_until(at);
            again_alive = !opens_until(again);
            // Nothing half made has the name.
            if (there(path)) {
                unsigned char bytes[SIZE];
                assert_int_equal(read_whole(path, bytes, SIZE), SIZE);
            }
            assert_int_equal(open_file(&file), IDEM_OK);
            assert_born(0);
            assert_int_equal(idem_file_close(&file), IDEM_OK);
            if (again_alive)
                break;
        }
    }
    assert_true(at > 20);
}

/* What happens while the creator stands before a call. */
static void other_opens(void)
{
    if (open_file(&other) == IDEM_OK)
        assert_int_equal(prog_byte(&other, 'o'), 0);
}

static void other_opens_and_closes(void)
{
    other_opens();
    (void)idem_file_close(&other);
}

static unsigned other_dies_at;
static int other_died;

static void other_opens_and_dies(void)
{
    static struct process p;

    other_died = 0;
    expect_fault(&p, ALL, other_dies_at, DIE, 0);
    if (setjmp(p.death) == 0) {
        if (idem_file_open(&other, path, SECTOR, SECTORS) == IDEM_OK)
            assert_int_equal(prog_byte(&other, 'o'), 0);
    } else {
        other_died = 1;
    }
    bury(&p);
}

static void other_replaces_the_file(void)
{
    char name[320];
    unsigned char zeros[SIZE] = { 'r' };

    (void)snprintf(name, sizeof name, "%s/replacement", dir);
    write_whole(name, zeros, sizeof zeros);
    assert_int_equal(rename(name, path), 0);
}

/* Opens `file` with something else before call number `at`; *result tells how
   it went.  Whether there was such a call. */
static int open_while(void (*aside)(void), unsigned at, int *result)
{
    static struct process p;

    expect_fault(&p, ALL, at, ASIDE, 0);
    p.aside = aside;
    *result = open_file(&file);
    me = &calm;
    return p.count > p.at;
}

/* Whether the file begins with that byte. */
static int begins_with(unsigned char byte)
{
    unsigned char bytes[SIZE];

    return there(path) && read_whole(path, bytes, SIZE) == SIZE &&
           bytes[0] == byte;
}

static void of_two_creators_one_gets_the_file(void **state)
{
    unsigned at, won = 0, lost = 0;
    int result;

    (void)state;
    for (at = 0; ; at++) {
        (void)remove(path);
        memset(&other, 0, sizeof other);
        other.fd = -1;
        if (!open_while(other_opens, at, &result))
            break;
        if (result == IDEM_OK) {
            won++;
            assert_int_equal(other.fd, -1);
            assert_born(0);
            assert_int_equal(idem_file_close(&file), IDEM_OK);
        } else {
            lost++;
            assert_int_equal(result, IDEM_E_LOCK);
            assert_true(other.fd >= 0);
            assert_born('o');
            assert_int_equal(idem_file_close(&other), IDEM_OK);
        }
    }
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_true(won > 5 && lost > 2);
}

static void what_another_wrote_meanwhile_is_kept(void **state)
{
    unsigned at, kept = 0;
    int result;

    (void)state;
    for (at = 0; ; at++) {
        int wrote;

        (void)remove(path);
        if (!open_while(other_opens_and_closes, at, &result))
            break;
        wrote = other.error == 0 && begins_with('o');
        kept += (unsigned)wrote;
        assert_true(result == IDEM_OK || result == IDEM_E_LOCK);
        if (result == IDEM_OK)
            assert_int_equal(idem_file_close(&file), IDEM_OK);
        assert_int_equal(open_file(&file), IDEM_OK);
        assert_born(wrote ? 'o' : 0);
        assert_int_equal(idem_file_close(&file), IDEM_OK);
    }
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_true(kept > 2);
}

static void another_may_die_at_every_call_meanwhile(void **state)
{
    unsigned at;
    int result, more = 1;

    (void)state;
    for (at = 0; more; at++) {
        for (other_dies_at = 0; ; other_dies_at++) {
            (void)remove(path);
            (void)remove(unborn);
            more = open_while(other_opens_and_dies, at, &result);
            // The other is dead or gone: nobody else can have the file.
            if (result == IDEM_OK)
                assert_int_equal(idem_file_close(&file), IDEM_OK);
            else
                assert_int_equal(result, IDEM_E_LOCK);
            if (there(path)) {
                unsigned char bytes[SIZE];
                assert_int_equal(read_whole(path, bytes, SIZE), SIZE);
            }
            assert_int_equal(open_file(&file), IDEM_OK);
            assert_true(begins_with(0) || begins_with('o'));
            if (more && !other_died && other.error == 0)
                assert_true(begins_with('o') || result == IDEM_OK);
            assert_false(there(unborn));
            assert_int_equal(idem_file_close(&file), IDEM_OK);
            if (!more || !other_died)
                break;
        }
    }
}

static void a_file_replaced_meanwhile_is_not_taken_for_the_other(void **state)
{
    unsigned at, taken = 0, missed = 0;
    int result;

    (void)state;
    for (at = 0; ; at++) {
        struct stat named, opened;

        (void)remove(path);
        assert_int_equal(open_file(&file), IDEM_OK);
        assert_int_equal(idem_file_close(&file), IDEM_OK);
        if (!open_while(other_replaces_the_file, at, &result))
            break;
        if (result != IDEM_OK) {
            missed++;
            assert_int_equal(result, IDEM_E_LOCK);
            continue;
        }
        assert_int_equal(stat(path, &named), 0);
        assert_int_equal(fstat(file.fd, &opened), 0);
        // It may have been replaced after the look at its name: nobody can help
        // that; but never before the lock was taken.
        taken += named.st_ino == opened.st_ino;
        assert_int_equal(idem_file_close(&file), IDEM_OK);
    }
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_true(taken >= 2 && missed >= 2);
}

static void a_file_of_that_number_elsewhere_is_another(void **state)
{
    struct process p;
    unsigned at, missed = 0;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    for (at = 0; at < 4; at++) {
        int result;
        expect_fault(&p, STAT, at, ELSEWHERE, 0);
        result = open_file(&file);
        me = &calm;
        missed += result == IDEM_E_LOCK;
        if (result != IDEM_E_LOCK)
            assert_int_equal(result, IDEM_OK);
        if (result == IDEM_OK)
            assert_int_equal(idem_file_close(&file), IDEM_OK);
    }
    assert_int_equal(missed, 1);
}

static void other_makes_a_pipe(void)
{
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void a_pipe_made_meanwhile_is_not_a_journal(void **state)
{
    static struct process p;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    expect_fault(&p, OPEN, 0, ASIDE, 0);
    p.aside = other_makes_a_pipe;
    assert_int_equal(open_file(&file), IDEM_E_FORMAT);
    assert_true(struck());
}

/* ---------------------------------------------------------------------------
   calls that fail
   ------------------------------------------------------------------------ */

/* Everything that is done with a file; the first result that is not 0. */
static int use(idem_file *f)
{
    const idem_storage *s = &f->storage;
    unsigned char bytes[100], back[100];
    int result = idem_file_open(f, path, SECTOR, SECTORS);
    size_t i;

    if (result)
        return result;
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i + 1);
    result = s->prog(s->ctx, 1000, bytes, sizeof bytes);
    if (!result)
        result = s->sync(s->ctx);
    memset(back, 0, sizeof back);
    if (!result)
        result = s->read(s->ctx, 1000, back, sizeof back);
    if (!result)
        assert_memory_equal(back, bytes, sizeof back);
    return result;
}

static void interrupted_and_halved_calls_are_resumed(void **state)
{
    static const int faults[] = { FAIL, HALF };
    static struct process p;
    unsigned at, i;
    int more;

    (void)state;
    for (i = 0; i < COUNT(faults); i++)
        for (at = 0, more = 1; more; at++) {
            int which = READ | WRITE | (faults[i] == FAIL ? SYNC | LOCK : 0);

            (void)remove(path);
            synced = 0;
            expect_fault(&p, which, at, faults[i], EINTR);
            assert_int_equal(use(&file), 0);
            more = struck();
            assert_int_equal(synced, 4);
            assert_int_equal(idem_file_close(&file), IDEM_OK);
            assert_false(there(unborn));
            assert_int_equal(open_file(&file), IDEM_OK);
            assert_int_equal(idem_file_close(&file), IDEM_OK);
        }
    assert_int_equal(dropped, 0);
}

static int error_told;          // file.error, while a call failed

/* Uses the file while a call fails, then again while none does; *result is that
   of the former.  Whether there was such a call. */
static int use_failing(int which, unsigned at, int error, int *result)
{
    static struct process p;
    unsigned char bytes[SIZE];
    int more;

    (void)remove(path);
    expect_fault(&p, which, at, FAIL, error);
    *result = use(&file);
    more = struck();
    error_told = file.error;
    (void)idem_file_close(&file);
    if (there(path))
        assert_int_equal(read_whole(path, bytes, SIZE), SIZE);
    (void)remove(path);
    assert_int_equal(use(&file), 0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_false(there(unborn));
    return more;
}

static void a_call_that_fails_is_told_and_does_no_harm(void **state)
{
    static const int errors[] = { EIO, ENOSPC, ENOMEM, ENOLCK };
    const int which = OPEN | READ | WRITE | SYNC | LOCK | LINK | TRUNCATE;
    unsigned at, i;
    int result;

    (void)state;
    for (i = 0; i < COUNT(errors); i++) {
        for (at = 0; use_failing(which, at, errors[i], &result); at++) {
            if (result > 0)             // a callback's
                assert_int_equal(result, errors[i]);
            else
                assert_int_equal(result, IDEM_E_STORAGE);
            if (result < 0)
                assert_int_equal(error_told, errors[i]);
        }
        assert_int_equal(result, 0);
        assert_true(at > 12);
    }
}

/* What cannot be looked at is taken for somebody else's. */
static void a_look_that_fails_does_no_harm(void **state)
{
    unsigned at;
    int result;

    (void)state;
    for (at = 0; use_failing(STAT, at, EIO, &result); at++)
        assert_true(result == 0 || result == IDEM_E_LOCK ||
                    result == IDEM_E_STORAGE);
    assert_int_equal(result, 0);
    assert_true(at >= 8);
}

static void what_need_not_be_told_does_no_harm(void **state)
{
    static struct process p;
    unsigned at;
    int more = 1;

    (void)state;
    for (at = 0; more; at++) {
        (void)remove(path);
        expect_fault(&p, CLOSE | UNLINK | ADVISE, at, FAIL, EIO);
        assert_int_equal(use(&file), 0);
        more = struck();
        assert_int_equal(idem_file_close(&file), IDEM_OK);
        assert_int_equal(open_file(&file), IDEM_OK);
        assert_int_equal(idem_file_close(&file), IDEM_OK);
        assert_false(there(unborn));
    }
    assert_int_equal(open_file(&file), IDEM_OK);
    expect_fault(&p, CLOSE, 0, FAIL, EIO);
    assert_int_equal(idem_file_close(&file), IDEM_E_STORAGE);
    assert_int_equal(file.error, EIO);
    assert_true(struck());
    assert_int_equal(open_file(&other), IDEM_OK);       // it is closed
    assert_int_equal(idem_file_close(&other), IDEM_OK);
}

static void a_full_disk_leaves_nothing_behind(void **state)
{
    static struct process p;
    unsigned at;

    (void)state;
    for (at = 0; at < 2; at++) {
        expect_fault(&p, WRITE, at, FAIL, ENOSPC);
        assert_int_equal(open_file(&file), IDEM_E_STORAGE);
        assert_int_equal(file.error, ENOSPC);
        assert_true(struck());
        assert_false(there(path));
        assert_false(there(unborn));
    }
}

static void transfers_of_nothing_end(void **state)
{
    static struct process p;
    char byte = 0;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    expect_fault(&p, READ | WRITE, 0, ZERO, 0);
    assert_int_equal(prog_byte(&file, 'a'), EIO);
    assert_true(struck());
    expect_fault(&p, READ | WRITE, 0, ZERO, 0);
    assert_int_equal(file.storage.read(&file, 0, &byte, 1), EIO);
    assert_true(struck());
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

static void a_program_that_failed_may_be_repeated(void **state)
{
    static struct process p;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    expect_fault(&p, WRITE, 0, FAIL, ENOSPC);
    assert_int_equal(prog_byte(&file, 'a'), ENOSPC);
    assert_int_equal(prog_byte(&file, 'a'), 0);
    assert_true(struck());
    assert_int_equal(file.error, 0);
    assert_int_equal(file.storage.sync(&file), 0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_born('a');
}

static void after_a_failed_sync_nothing_is_written_until_reopened(void **state)
{
    static const int errors[] = { EIO, ENOSPC, EDQUOT };
    static struct process p;
    char byte = 0;
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(errors); i++) {
        assert_int_equal(open_file(&file), IDEM_OK);
        assert_int_equal(prog_byte(&file, 'a'), 0);
        expect_fault(&p, SYNC, 0, FAIL, errors[i]);
        assert_int_equal(file.storage.sync(&file), errors[i]);
        assert_true(struck());
        assert_int_equal(dropped, i + 1);   // the kernel is not believed
        assert_int_equal(file.error, errors[i]);
        assert_int_equal(prog_byte(&file, 'b'), errors[i]);
        assert_int_equal(file.storage.sync(&file), errors[i]);
        assert_int_equal(file.storage.sync(&file), errors[i]);
        assert_int_equal(file.storage.read(&file, 0, &byte, 1), 0);
        assert_int_equal(byte, 'a');
        assert_int_equal(idem_file_close(&file), IDEM_OK);
        assert_born('a');
    }
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(file.error, 0);
    assert_int_equal(prog_byte(&file, 'c'), 0);
    assert_int_equal(file.storage.sync(&file), 0);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

static void what_was_not_synced_is_synced_before_it_is_read(void **state)
{
    static struct process p;

    (void)state;
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(prog_byte(&file, 'a'), 0);
    bury(&p);
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    expect_fault(&p, SYNC, 0, FAIL, EIO);       // the file
    assert_int_equal(open_file(&file), IDEM_E_STORAGE);
    assert_int_equal(file.error, EIO);
    assert_true(struck());
    assert_int_equal(dropped, 1);
    expect_fault(&p, SYNC, 1, FAIL, EIO);       // its name
    assert_int_equal(open_file(&file), IDEM_E_STORAGE);
    assert_int_equal(file.error, EIO);
    assert_true(struck());
    expect_fault(&p, SYNC, 1, FAIL, EINVAL);    // not everywhere possible
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_true(struck());
    assert_int_equal(idem_file_close(&file), IDEM_OK);
    assert_born('a');
}

/* ---------------------------------------------------------------------------
   a table in a file
   ------------------------------------------------------------------------ */

/* Opens file and table, as after a restart. */
static void start(fixture *f)
{
    me = &calm;
    assert_int_equal(open_file(&file), IDEM_OK);
    f->config.storage = &file.storage;
    fixture_open(f, 0);
    assert_int_equal(f->table.stats.lost, 0);
}

static void stop(void)
{
    me = &calm;
    assert_int_equal(idem_file_close(&file), IDEM_OK);
}

static void what_a_table_answered_outlives_it(void **state)
{
    fixture *f = (fixture *)*state;

    start(f);
    (void)finish(f, "panel", "a", 0);
    assert_int_equal(ask(f, "b", 0), IDEM_EXECUTE);
    stop();
    start(f);
    assert_int_equal(ask(f, "a", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "poured");
    assert_int_equal(ask(f, "b", 0), IDEM_RECOVER);
    assert_int_equal(f->claim.attempt, 2);
    assert_int_equal(ask(f, "c", 0), IDEM_EXECUTE);
    stop();
}

static void opening_a_table_writes_nothing(void **state)
{
    fixture *f = (fixture *)*state;
    unsigned char before[SIZE], after[SIZE];
    int round;

    for (round = 0; round < 2; round++) {
        assert_int_equal(open_file(&file), IDEM_OK);
        stop();
        assert_int_equal(read_whole(path, before, SIZE), SIZE);
        start(f);
        stop();
        assert_int_equal(read_whole(path, after, SIZE), SIZE);
        assert_memory_equal(before, after, SIZE);
        start(f);
        (void)finish(f, "panel", nth((uint32_t)round), 0);
        stop();
    }
}

static void foreign_bytes_are_kept_until_formatted(void **state)
{
    fixture *f = (fixture *)*state;
    size_t size;

    assert_int_equal(open_file(&file), IDEM_OK);
    f->config.storage = &file.storage;
    assert_int_equal(idem_open(&f->table, &f->config, NULL, 0, 0),
                     IDEM_E_MEMORY);
    size = f->table.needed;
    stop();
    start(f);
    stop();
    write_foreign(path, SIZE);
    assert_int_equal(open_file(&file), IDEM_OK);
    assert_int_equal(idem_open(&f->table, &f->config, f->memory, size, 0),
                     IDEM_E_FORMAT);
    assert_foreign(path, SIZE);
    assert_int_equal(idem_format(&f->table, &f->config, f->memory, size, 0),
                     IDEM_OK);
    (void)finish(f, "panel", "a", 0);
    stop();
    start(f);
    assert_int_equal(ask(f, "a", 0), IDEM_REPLAY);
    stop();
}

static void a_full_disk_loses_nothing(void **state)
{
    fixture *f = (fixture *)*state;
    struct process p;

    start(f);
    (void)finish(f, "panel", "z", 0);
    expect_fault(&p, WRITE, 0, FAIL, ENOSPC);
    assert_int_equal(ask(f, "a", 0), IDEM_E_STORAGE);
    assert_true(struck());
    assert_int_equal(f->table.storage_error, ENOSPC);
    assert_int_equal(ask(f, "a", 0), IDEM_EXECUTE);     // nothing was granted
    expect_fault(&p, WRITE, 0, FAIL, EDQUOT);
    assert_int_equal(complete(f, &f->claim, "poured", 0), IDEM_E_STORAGE);
    assert_true(struck());
    assert_int_equal(f->table.storage_error, EDQUOT);
    assert_int_equal(complete(f, &f->claim, "poured", 0), IDEM_OK);
    stop();
    start(f);
    assert_int_equal(ask(f, "z", 0), IDEM_REPLAY);
    assert_int_equal(ask(f, "a", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "poured");
    stop();
}

static void a_disk_that_was_full_for_long_is_used_again(void **state)
{
    fixture *f = (fixture *)*state;
    struct process p;
    idem_claim claim;
    int i;

    start(f);
    assert_int_equal(ask(f, "a", 0), IDEM_EXECUTE);
    claim = f->claim;
    expect_fault(&p, WRITE, 0, FAIL_ON, ENOSPC);
    for (i = 0; i < 100; i++) {
        assert_true(ask(f, "b", 0) < 0);
        assert_int_equal(complete(f, &claim, "poured", 0), IDEM_E_STORAGE);
    }
    assert_true(struck());
    assert_int_equal(complete(f, &claim, "poured", 0), IDEM_OK);
    assert_int_equal(ask(f, "b", 0), IDEM_EXECUTE);
    stop();
    start(f);
    assert_int_equal(ask(f, "a", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "poured");
    assert_int_equal(ask(f, "b", 0), IDEM_RECOVER);
    stop();
}

static void after_a_failed_sync_the_table_must_be_reopened(void **state)
{
    fixture *f = (fixture *)*state;
    struct process p;
    idem_claim claim;

    start(f);
    (void)finish(f, "panel", "a", 0);
    assert_int_equal(ask(f, "b", 0), IDEM_EXECUTE);
    claim = f->claim;
    expect_fault(&p, SYNC, 0, FAIL, EIO);
    assert_int_equal(complete(f, &claim, "poured", 0), IDEM_E_STORAGE);
    assert_true(struck());
    assert_int_equal(f->table.storage_error, EIO);
    assert_int_equal(complete(f, &claim, "poured", 0), IDEM_E_STORAGE);
    assert_int_equal(ask(f, "c", 0), IDEM_E_STORAGE);
    assert_int_equal(forget(f, "panel", "a", 0), IDEM_E_STORAGE);
    assert_int_equal(idem_sync(&f->table), IDEM_E_STORAGE);
    // The table alone is not enough: the file remembers, too.
    fixture_open(f, 0);
    assert_int_equal(ask(f, "c", 0), IDEM_E_STORAGE);
    stop();
    start(f);
    assert_int_equal(ask(f, "a", 0), IDEM_REPLAY);
    assert_int_equal(ask(f, "c", 0), IDEM_EXECUTE);
    switch (ask(f, "b", 0)) {
    case IDEM_RECOVER: assert_int_equal(f->claim.attempt, 2); break;
    case IDEM_REPLAY:  assert_string_equal(f->buffer, "poured"); break;
    default:           fail();
    }
    stop();
}

static fixture *inherited;

/* In a child; the number of what is wrong. */
static int use_inherited_table(void)
{
    fixture *f = inherited;
    idem_outcome outcome = { .code = 1 };

    if (ask(f, "b", 0) != IDEM_E_STORAGE || f->table.storage_error != EPERM)
        return 1;
    (void)ask(f, "a", 0);
    if (idem_complete(&f->table, &f->claim, &outcome, 0) == IDEM_OK)
        return 2;
    if (idem_sync(&f->table) == IDEM_OK && idem_maintain(&f->table, 0) < 0)
        return 3;
    return 0;
}

static void a_childs_table_refuses_and_the_parents_goes_on(void **state)
{
    fixture *f = (fixture *)*state;
    unsigned char before[SIZE], after[SIZE];

    start(f);
    assert_int_equal(ask(f, "a", 0), IDEM_EXECUTE);
    assert_int_equal(read_whole(path, before, SIZE), SIZE);
    inherited = f;
    assert_int_equal(elsewhere(use_inherited_table), 0);
    assert_int_equal(read_whole(path, after, SIZE), SIZE);
    assert_memory_equal(before, after, SIZE);
    assert_int_equal(complete(f, &f->claim, "poured", 0), IDEM_OK);
    stop();
    start(f);
    assert_int_equal(ask(f, "a", 0), IDEM_REPLAY);
    assert_string_equal(f->buffer, "poured");
    assert_int_equal(ask(f, "b", 0), IDEM_EXECUTE);
    stop();
}

/* ---------------------------------------------------------------------------
   every call of a table's life fails, is cut short, or is the last
   ------------------------------------------------------------------------ */

// What a sender knows of its key.
struct known {
    int asked;                  // a begin may have been granted
    int executed;               // since it was asked first
    int done;                   // the completion was reported
    int forgetting;             // forget was not reported
    char response[RESPONSE_MAX];    // of the completion that was tried last
};

static struct known known[CAPACITY];
static unsigned serial;

/* Any answer must be one that what the sender knows allows. */
static void known_answer(fixture *f, unsigned k, int answer)
{
    struct known *it = &known[k];

    switch (answer) {
    case IDEM_EXECUTE:
        assert_true(!it->executed || it->forgetting);
        assert_true(!it->done || it->forgetting);
        break;
    case IDEM_RECOVER:
        assert_true(it->asked && !it->done);
        assert_true(f->claim.attempt > 1);
        break;
    case IDEM_REPLAY:
        assert_true(it->asked);
        assert_string_equal(f->buffer, it->response);
        break;
    case IDEM_BUSY:             // the completion was refused twice
        assert_true(it->executed && !it->done);
        break;
    default:
        assert_int_equal(answer, IDEM_E_STORAGE);
    }
}

/* One command, executed and completed if that is the answer. */
static int known_command(fixture *f, unsigned k)
{
    struct known *it = &known[k];
    int answer, result;

    it->asked = 1;
    answer = ask(f, nth(k), 0);
    known_answer(f, k, answer);
    if (answer != IDEM_EXECUTE && answer != IDEM_RECOVER)
        return answer;
    memset(it, 0, sizeof *it);
    it->asked = it->executed = 1;
    (void)snprintf(it->response, sizeof it->response, "%015u", ++serial);
    result = complete(f, &f->claim, it->response, 0);
    if (result == IDEM_E_STORAGE)
        result = complete(f, &f->claim, it->response, 0);
    it->done = result == IDEM_OK;
    return result;
}

static int known_forget(fixture *f, unsigned k)
{
    int result;

    known[k].forgetting = 1;
    result = forget(f, "panel", nth(k), 0);
    if (result == IDEM_OK || result == IDEM_E_NOT_FOUND)
        memset(&known[k], 0, sizeof known[k]);
    return result;
}

/* Commands until the journal has gone round. */
static void live_a_life(fixture *f, unsigned commands)
{
    unsigned i;

    for (i = 0; i < commands; i++) {
        int result = known_command(f, i % CAPACITY);

        if (result != IDEM_E_STORAGE && i % 3 == 0)
            result = known_forget(f, (i + 2) % CAPACITY);
        if (result == IDEM_E_STORAGE && file.error) {
            (void)idem_file_close(&file);
            start(f);
        }
    }
}

static void after_any_fault_every_answer_is_right(void **state)
{
    static const struct { int which, fault, error; } cases[] = {
        { READ | WRITE | SYNC, FAIL, EIO }, { WRITE, FAIL, ENOSPC },
        { READ | WRITE | SYNC, FAIL, EINTR }, { READ | WRITE, HALF, 0 },
        { ALL, DIE, 0 },
    };
    static struct process p;
    static unsigned at, i, k, more;
    fixture *f = (fixture *)*state;

    f->config.max_attempts = 255;
    for (i = 0; i < COUNT(cases); i++)
        for (at = 0, more = 1; more; at++) {
            (void)remove(path);
            memset(known, 0, sizeof known);
            start(f);
            expect_fault(&p, cases[i].which, at, cases[i].fault,
                         cases[i].error);
            if (setjmp(p.death) == 0) {
                live_a_life(f, 160);
                more = struck();
                stop();
            } else {
                (void)close(file.fd);           // and nothing else
            }
            start(f);
            for (k = 0; k < CAPACITY; k++) {
                int answer = ask(f, nth(k), 0);

                known_answer(f, k, answer);
                assert_true(answer > 0 && answer != IDEM_BUSY);
            }
            stop();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_new_file_is_zeros_and_the_owners),
        FILE_TEST(
            a_file_is_synced_before_it_is_linked_and_its_name_too),
        FILE_TEST(the_medium_is_in_place_and_of_single_bytes),
        FILE_TEST(what_is_programmed_is_read_also_after_reopening),
        FILE_TEST(a_read_beyond_the_end_fails),
        FILE_TEST(impossible_arguments_are_refused),
        FILE_TEST(a_closed_file_touches_nothing),
        FILE_TEST(a_second_opening_is_refused),
        FILE_TEST(a_child_touches_nothing_and_does_not_unlock),
        FILE_TEST(closing_unlocks_though_a_child_lives),
        FILE_TEST(a_child_keeps_a_dead_parents_lock_until_it_closes),
        FILE_TEST(an_exec_closes_the_file),
        FILE_TEST(a_file_of_another_size_is_not_touched),
        FILE_TEST(only_a_regular_file_is_a_journal),
        FILE_TEST(a_symbolic_link_is_followed_but_not_made_a_file),
        FILE_TEST(what_the_system_refuses_is_told),
        FILE_TEST(a_path_may_be_long_but_not_too_long),
        FILE_TEST(a_path_may_be_relative),
        FILE_TEST(what_a_dead_creator_left_is_made_new),
        FILE_TEST(a_second_name_is_removed_and_its_file_kept),
        FILE_TEST(a_living_creator_is_left_alone),
        FILE_TEST(a_symbolic_link_is_not_made_a_journal),
        FILE_TEST(creation_may_die_at_every_call),
        FILE_TEST(of_two_creators_one_gets_the_file),
        FILE_TEST(what_another_wrote_meanwhile_is_kept),
        FILE_TEST(another_may_die_at_every_call_meanwhile),
        FILE_TEST(a_file_replaced_meanwhile_is_not_taken_for_the_other),
        FILE_TEST(a_file_of_that_number_elsewhere_is_another),
        FILE_TEST(a_pipe_made_meanwhile_is_not_a_journal),
        FILE_TEST(interrupted_and_halved_calls_are_resumed),
        FILE_TEST(a_call_that_fails_is_told_and_does_no_harm),
        FILE_TEST(a_look_that_fails_does_no_harm),
        FILE_TEST(what_need_not_be_told_does_no_harm),
        FILE_TEST(a_full_disk_leaves_nothing_behind),
        FILE_TEST(transfers_of_nothing_end),
        FILE_TEST(a_program_that_failed_may_be_repeated),
        FILE_TEST(after_a_failed_sync_nothing_is_written_until_reopened),
        FILE_TEST(what_was_not_synced_is_synced_before_it_is_read),
        TABLE_TEST(what_a_table_answered_outlives_it),
        TABLE_TEST(opening_a_table_writes_nothing),
        TABLE_TEST(foreign_bytes_are_kept_until_formatted),
        TABLE_TEST(a_full_disk_loses_nothing),
        TABLE_TEST(a_disk_that_was_full_for_long_is_used_again),
        TABLE_TEST(after_a_failed_sync_the_table_must_be_reopened),
        TABLE_TEST(a_childs_table_refuses_and_the_parents_goes_on),
        TABLE_TEST(after_any_fault_every_answer_is_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

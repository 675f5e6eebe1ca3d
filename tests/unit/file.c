/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that a journal's file is whole or blank, is one opening's alone, says
 * what the system refused and touches nothing that it refuses; and that a table
 * in it keeps its promises whatever system call fails, is interrupted, does
 * half, or is the last.
 *
 * The implementation here is a copy of its own, whose system calls go through a
 * kernel of ours.  That can fail one, cut it short, run something else before
 * it, or let the process die there: what is open is closed, as by kill -9, and
 * the test goes on.  It does not sync.  What needs real processes, signals and
 * syncs is in tests/file/file.sh.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* ---------------------------------------------------------------------------
   the kernel
   ------------------------------------------------------------------------ */

enum {
    OPEN = 1, CLOSE = 2, READ = 4, WRITE = 8, SYNC = 16, LOCK = 32, STAT = 64,
    TRUNCATE = 128, ADVISE = 256, ALL = 511
};

enum { NOTHING, FAIL, FAIL_ON, HALF, ZERO, DIE, ASIDE };

#define CALLS_KEPT 200

// A simulated process: what happens to it, and what it has open.
typedef struct process {
    int which;                  // calls that are counted
    unsigned count;
    unsigned at;                // the number of the call at which ..
    int fault;                  // .. this happens
    int error;
    void (*aside)(void);
    int fds[8];
    unsigned fd_count;
    jmp_buf death;
} process;

static process calm;
static process *me = &calm;

static int synced;              // syncs that succeeded
static int dropped;             // times the cache was told to forget
static int history[CALLS_KEPT]; // calls, in their order
static unsigned history_len;

static int strike(int call)
{
    process *self = me;

    history[history_len++ % CALLS_KEPT] = call;
    if (!(self->which & call) || self->count++ < self->at)
        return NOTHING;
    errno = self->error;
    if (self->fault == FAIL_ON)
        return FAIL;
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
    return self->fault;
}

/* What a system calls the same that takes longer paths than this one. */
static const char *shortened(const char *path)
{
    while (path[0] == '/' && path[1] == '/')
        path++;
    return path;
}

static int kernel_open(const char *path, int flags, ...)
{
    va_list mode;
    int fd;

    if (strike(OPEN) == FAIL)
        return -1;
    va_start(mode, flags);
    fd = open(shortened(path), flags, flags & O_CREAT ? va_arg(mode, int) : 0);
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

static int kernel_fadvise(int fd, off_t at, off_t len, int advice)
{
    if (strike(ADVISE) == FAIL)
        return EINVAL;
    dropped += at == 0 && len == 0 && advice == POSIX_FADV_DONTNEED;
    return fcntl(fd, F_GETFD) < 0 ? EBADF : 0;
}

#define MAY_FAIL(name, call, parameters, arguments)                            \
    static int kernel_##name parameters                                        \
    {                                                                          \
        return strike(call) == FAIL ? -1 : name arguments;                     \
    }

MAY_FAIL(flock, LOCK, (int fd, int operation), (fd, operation))
MAY_FAIL(stat, STAT, (const char *path, struct stat *it),
         (shortened(path), it))
MAY_FAIL(fstat, STAT, (int fd, struct stat *it), (fd, it))
MAY_FAIL(ftruncate, TRUNCATE, (int fd, off_t size), (fd, size))

#define open(...) kernel_open(__VA_ARGS__)
#define close(fd) kernel_close(fd)
#define pread(fd, dst, len, at) kernel_pread(fd, dst, len, at)
#define pwrite(fd, src, len, at) kernel_pwrite(fd, src, len, at)
#define fsync kernel_sync
#define fdatasync kernel_sync
#define flock(fd, operation) kernel_flock(fd, operation)
#define stat(path, it) kernel_stat(path, it)
#define fstat(fd, it) kernel_fstat(fd, it)
#define ftruncate(fd, size) kernel_ftruncate(fd, size)
#define posix_fadvise(fd, at, len, advice) kernel_fadvise(fd, at, len, advice)

// Misuse is counted, and refused all the same.
static int asserted;
#define IDEM_ASSERT(x) ((x) ? (void)0 : (void)asserted++)
#define IDEM_FILE_STORAGE
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#undef open
#undef close
#undef pread
#undef pwrite
#undef fsync
#undef fdatasync
#undef flock
#undef stat
#undef fstat
#undef ftruncate
#undef posix_fadvise

static process *expected = &calm;

/* From here on `fault` happens at call number `at` of those in `which`. */
static void expect_fault(process *p, int which, unsigned at, int fault,
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
static void bury(process *p)
{
    me = &calm;
    while (p->fd_count)
        (void)close(p->fds[--p->fd_count]);
}

/* ---------------------------------------------------------------------------
   files
   ------------------------------------------------------------------------ */

enum { CAPACITY = 4, KEY_MAX = 8, RESPONSE_MAX = 16, SECTOR = 512 };
enum {
    SECTORS = IDEM_SECTORS(CAPACITY, KEY_MAX, RESPONSE_MAX, 0, SECTOR, 1),
    SIZE = SECTOR * SECTORS
};

static char dir[256];
static char path[300];
static idem_file file, other;
static int descriptors_before;

static int descriptors(void)
{
    int fd, count = 0;

    for (fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* An empty directory. */
static int setup(void **state)
{
    const char *parent = getenv("TMPDIR");

    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/idem-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/journal", dir);
    memset(&file, 0, sizeof file);
    memset(&other, 0, sizeof other);
    memset(&calm, 0, sizeof calm);
    me = &calm;
    dropped = asserted = 0;
    descriptors_before = descriptors();
    return 0;
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

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown, void, )

static int open_file(idem_file *f)
{
    return idem_file_open(f, path, SECTOR, SECTORS);
}

static void close_file(void)
{
    is(idem_file_close(&file), IDEM_OK);
}

static int there(const char *name)
{
    struct stat it;

    return lstat(name, &it) == 0;
}

/* Makes a file of `len` bytes, all the same. */
static void write_whole(const char *name, int byte, size_t len)
{
    FILE *out = fopen(name, "wb");

    assert_non_null(out);
    while (len--)
        (void)fputc(byte, out);
    is(fclose(out), 0);
}

/* The length; at most `size` bytes are copied. */
static size_t read_whole(const char *name, unsigned char *bytes, size_t size)
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

static void assert_foreign(const char *name, size_t len)
{
    unsigned char bytes[2 * SIZE];
    size_t i;

    is(read_whole(name, bytes, sizeof bytes), len);
    for (i = 0; i < len; i++)
        is(bytes[i], 'f');
}

/* The file is whole, and its first byte is this. */
static int begins_with(unsigned char byte)
{
    unsigned char bytes[SIZE];

    return there(path) && read_whole(path, bytes, SIZE) == SIZE &&
           bytes[0] == byte;
}

/* There is no file, or one without anything in it. */
static void assert_nothing_in_it(void)
{
    unsigned char bytes[8 * SIZE];
    size_t len = there(path) ? read_whole(path, bytes, sizeof bytes) : 0;

    assert_true(len <= sizeof bytes);
    while (len > 0)
        is(bytes[--len], 0);
}

/* The file is whole, and begins with `first` and zeros. */
static void assert_born(unsigned char first)
{
    unsigned char bytes[SIZE];
    size_t i;

    is(read_whole(path, bytes, sizeof bytes), SIZE);
    is(bytes[0], first);
    for (i = 1; i < sizeof bytes; i++)
        is(bytes[i], 0);
}

/* Nothing is in the way: it can be opened, and is that file. */
static void opens_as(unsigned char first)
{
    is(open_file(&file), IDEM_OK);
    assert_born(first);
    close_file();
}

static int prog_byte(idem_file *f, unsigned char byte)
{
    return f->storage.prog(f->storage.ctx, 0, &byte, 1);
}

/* ---------------------------------------------------------------------------
   one file
   ------------------------------------------------------------------------ */

TEST(a_new_file_is_zeros_and_the_owners)
{
    struct stat it;

    opens_as(0);
    is(file.error, 0);
    is(stat(path, &it), 0);
    is(it.st_mode & 0777, 0600);
    assert_true(it.st_blocks * 512 >= SIZE);            // no holes
}

/* First what the name stands for: what is found under it is whole. */
TEST(a_new_file_is_synced_and_then_its_name)
{
    unsigned i, written = 0, first = 0, opened = 0, last = 0;

    history_len = 0;
    is(open_file(&file), IDEM_OK);
    for (i = 0; i < history_len; i++) {
        written = history[i] == WRITE ? i : written;
        opened = history[i] == OPEN ? i : opened;       // its directory
        last = history[i] == SYNC ? i : last;
        first = first ? first : last;
    }
    assert_true(written < first && first < opened && opened < last);
    close_file();
}

TEST(what_is_programmed_is_read_also_after_reopening)
{
    const idem_storage *s = &file.storage;
    char text[16];
    uint32_t at;

    for (at = 0; at + 6 <= SIZE; at += 507) {   // also over the end of a sector
        is(open_file(&file), IDEM_OK);
        is(s->prog(s->ctx, at, "first", 6), 0);
        is(s->prog(s->ctx, at + 1, "IRS", 3), 0);
        is(s->sync(s->ctx), 0);
        close_file();
        is(open_file(&file), IDEM_OK);
        is(s->read(s->ctx, at, text, 6), 0);
        assert_string_equal(text, "fIRSt");
        close_file();
    }
}

TEST(a_read_beyond_the_end_fails)
{
    const idem_storage *s = &file.storage;
    char bytes[8];

    is(open_file(&file), IDEM_OK);
    is(prog_byte(&file, 'a'), 0);
    is(s->read(s->ctx, SIZE - 8, bytes, 8), 0);
    is(s->read(s->ctx, SIZE - 7, bytes, 8), EIO);
    is(truncate(path, 100), 0);                 // by somebody else
    is(s->read(s->ctx, 92, bytes, 8), 0);
    is(s->read(s->ctx, 96, bytes, 8), EIO);
    close_file();
    is(open_file(&file), IDEM_E_FORMAT);
}

TEST(impossible_arguments_are_refused)
{
    static const uint32_t sizes[][2] = {
        { 0, 10 }, { 262145, 10 }, { UINT32_MAX, 4 }, { 512, 0 }, { 512, 3 },
        { 512, 65536 }, { 512, UINT32_MAX }, { 262144, 16384 },
        { UINT32_MAX, UINT32_MAX },
    };
    size_t i;

    is(idem_file_open(NULL, path, SECTOR, SECTORS), IDEM_E_ARG);
    is(idem_file_open(&file, NULL, SECTOR, SECTORS), IDEM_E_ARG);
    for (i = 0; i < COUNT(sizes); i++)
        is(idem_file_open(&file, path, sizes[i][0], sizes[i][1]), IDEM_E_ARG);
    is(idem_file_close(NULL), IDEM_E_ARG);
    memset(&file, 0, sizeof file);
    is(idem_file_close(&file), IDEM_E_ARG);     // never opened
    is(asserted, 4 + COUNT(sizes));
    assert_false(there(path));
}

TEST(a_closed_file_touches_nothing)
{
    const idem_storage *s = &file.storage;
    char byte = 0;

    opens_as(0);
    is(s->read(s->ctx, 0, &byte, 1), EBADF);
    is(s->prog(s->ctx, 0, &byte, 1), EBADF);
    is(s->sync(s->ctx), EBADF);
    close_file();
    is(asserted, 0);
}

TEST(a_path_may_be_relative_and_not_too_long)
{
    char before[1024], name[5000];

    assert_non_null(getcwd(before, sizeof before));
    is(chdir(dir), 0);
    is(idem_file_open(&file, "journal", SECTOR, SECTORS), IDEM_OK);
    close_file();
    is(chdir(before), 0);
    assert_born(0);
    memset(name, 'j', sizeof name);
    name[sizeof name - 1] = 0;
    is(idem_file_open(&file, name, SECTOR, SECTORS), IDEM_E_STORAGE);
    is(file.error, ENAMETOOLONG);
    memset(name, '/', sizeof name);
    strcpy(name + sizeof name - sizeof path, path);
    is(idem_file_open(&file, name, SECTOR, SECTORS), IDEM_E_STORAGE);
    is(file.error, ENAMETOOLONG);
    opens_as(0);
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
    is(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int open_other(void)
{
    return open_file(&other);
}

TEST(a_second_opening_is_refused)
{
    is(open_file(&file), IDEM_OK);
    is(open_file(&other), IDEM_E_LOCK);
    is((int8_t)elsewhere(open_other), IDEM_E_LOCK);
    assert_int_not_equal(prog_byte(&other, 'x'), 0);
    is(prog_byte(&file, 'a'), 0);               // the first is not hurt
    close_file();
    is(elsewhere(open_other), IDEM_OK);         // dies with it open
    opens_as('a');
}

/* In a child of the process that opened `file`; the number of what is wrong. */
static int misbehave(void)
{
    const idem_storage *s = &file.storage;
    char byte = 'c';

    if (s->read(s->ctx, 0, &byte, 1) != EPERM || byte != 'c')
        return 1;
    if (s->prog(s->ctx, 0, &byte, 1) != EPERM || s->sync(s->ctx) != EPERM)
        return 2;
    if (open_other() != IDEM_E_LOCK)
        return 3;
    if (idem_file_close(&file) != IDEM_OK)
        return 4;
    return open_other() == IDEM_E_LOCK ? 0 : 5; // the parent has the lock still
}

TEST(a_child_touches_nothing_and_does_not_unlock)
{
    is(open_file(&file), IDEM_OK);
    is(elsewhere(misbehave), 0);
    is(open_file(&other), IDEM_E_LOCK);
    is(prog_byte(&file, 'p'), 0);
    close_file();
    assert_born('p');
}

TEST(closing_unlocks_though_a_child_lives)
{
    pid_t child;

    is(open_file(&file), IDEM_OK);
    is(fcntl(file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);   // an exec closes it
    child = fork();
    if (child == 0) {
        (void)alarm(10);                        // should the test fail
        (void)pause();
    }
    assert_true(child > 0);
    close_file();
    is(open_file(&other), IDEM_OK);
    is(kill(child, SIGKILL), 0);
    is(waitpid(child, NULL, 0), child);
    is(open_file(&file), IDEM_E_LOCK);
}

/* ---------------------------------------------------------------------------
   what is not ours
   ------------------------------------------------------------------------ */

TEST(a_file_of_another_size_is_not_touched)
{
    static const size_t sizes[] = { 1, SIZE - 1, SIZE + 1, 2 * SIZE };
    struct stat before, after;
    size_t i;

    for (i = 0; i < COUNT(sizes); i++) {
        write_whole(path, 'f', sizes[i]);
        is(stat(path, &before), 0);
        is(open_file(&file), IDEM_E_FORMAT);
        assert_foreign(path, sizes[i]);
        is(stat(path, &after), 0);
        is(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
        is(open_file(&other), IDEM_E_FORMAT);           // not locked
        assert_int_not_equal(prog_byte(&file, 'x'), 0);
    }
}

static void write_byte(const char *name, int byte, size_t at)
{
    FILE *out = fopen(name, "r+b");

    assert_non_null(out);
    is(fseek(out, (long)at, SEEK_SET), 0);
    is(fputc(byte, out), byte);
    is(fclose(out), 0);
}

/* One byte says that a file is somebody's, wherever it is. */
TEST(a_file_that_is_not_all_zeros_is_somebodys)
{
    static const size_t sizes[] = { 1, SIZE - 1, SIZE + 1, 2 * SIZE };
    unsigned char bytes[2 * SIZE];
    size_t i, part;

    for (i = 0; i < COUNT(sizes); i++)
        for (part = 0; part <= 8; part++) {
            size_t at = (sizes[i] - 1) * part / 8;

            write_whole(path, 0, sizes[i]);
            write_byte(path, 1, at);
            is(open_file(&file), IDEM_E_FORMAT);
            is(read_whole(path, bytes, sizeof bytes), sizes[i]);
            is(bytes[at], 1);
        }
}

TEST(a_foreign_file_is_not_touched_whatever_fails)
{
    static const int faults[] = { FAIL, HALF, ZERO, DIE };
    static process p;
    static unsigned at, i;
    static int more;

    write_whole(path, 'f', SIZE + 1);
    for (i = 0; i < COUNT(faults); i++)
        for (at = 0, more = 1; more; at++) {
            expect_fault(&p, ALL, at, faults[i], EIO);
            if (setjmp(p.death) == 0)
                assert_true(open_file(&file) < 0);
            more = struck();
            bury(&p);
            assert_foreign(path, SIZE + 1);
        }
}

TEST(a_blank_file_of_another_size_is_given_its_size)
{
    static const size_t sizes[] = { 0, 1, SIZE - 1, SIZE + 1, 2 * SIZE };
    struct stat it;
    size_t i;

    for (i = 0; i < COUNT(sizes); i++) {
        write_whole(path, 0, sizes[i]);
        opens_as(0);
        is(stat(path, &it), 0);
        assert_true(it.st_blocks * 512 >= SIZE);        // no holes
    }
    // Of a journal that was never written too.
    is(idem_file_open(&file, path, 2 * SECTOR, SECTORS), IDEM_OK);
    close_file();
    is(stat(path, &it), 0);
    is(it.st_size, 2 * SIZE);
    opens_as(0);
    is(open_file(&file), IDEM_OK);
    is(prog_byte(&file, 'a'), 0);
    close_file();
    is(idem_file_open(&file, path, 2 * SECTOR, SECTORS), IDEM_E_FORMAT);
    assert_born('a');
}

/* A blank file that is larger than any journal would take long to read. */
TEST(a_blank_file_beyond_4_gb_is_somebodys)
{
    const off_t size = (off_t)(UINT64_C(1) << 32);
    struct stat it;

    if (sizeof size < 8)
        skip();
    write_whole(path, 0, 0);
    is(truncate(path, size), 0);
    history_len = 0;
    is(open_file(&file), IDEM_E_FORMAT);
    while (history_len > 0)
        is(history[--history_len] & (READ | WRITE | TRUNCATE), 0);
    is(stat(path, &it), 0);
    assert_true(it.st_size == size);
}

TEST(only_a_regular_file_is_a_journal)
{
    is(mkdir(path, 0700), 0);
    is(open_file(&file), IDEM_E_FORMAT);
    is(rmdir(path), 0);
    is(mkfifo(path, 0600), 0);
    expect_fault(&calm, OPEN, 1000, NOTHING, 0);
    is(open_file(&file), IDEM_E_FORMAT);
    is(calm.count, 0);                          // being opened is an event
}

static void other_makes_a_pipe(void)
{
    is(remove(path), 0);
    is(mkfifo(path, 0600), 0);
}

TEST(a_pipe_made_meanwhile_is_not_a_journal)
{
    static process p;

    opens_as(0);
    expect_fault(&p, OPEN, 0, ASIDE, 0);
    p.aside = other_makes_a_pipe;
    is(open_file(&file), IDEM_E_FORMAT);
    assert_true(struck());
}

TEST(a_symbolic_link_is_followed)
{
    char real[320];
    struct stat it;

    (void)snprintf(real, sizeof real, "%s/real", dir);
    is(symlink(real, path), 0);
    opens_as(0);                                // makes what it points to
    is(lstat(path, &it), 0);
    assert_true(S_ISLNK(it.st_mode));
    is(idem_file_open(&file, real, SECTOR, SECTORS), IDEM_OK);
    is(open_file(&other), IDEM_E_LOCK);         // the lock is the same
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

TEST(what_the_system_refuses_is_told)
{
    is(chmod(dir, 0500), 0);                    // not to be created in
    is(elsewhere(open_unprivileged), EACCES);
    is(chmod(dir, 0700), 0);
    write_whole(path, 'f', SIZE);
    is(chmod(path, 0400), 0);                   // not to be written
    is(elsewhere(open_unprivileged), EACCES);
    assert_foreign(path, SIZE);
    (void)snprintf(path, sizeof path, "%s/none/journal", dir);
    is(open_file(&file), IDEM_E_STORAGE);
    is(file.error, ENOENT);
}

/* ---------------------------------------------------------------------------
   creators that die, and creators that meet
   ------------------------------------------------------------------------ */

TEST(a_living_creator_is_left_alone)
{
    int fd;

    write_whole(path, 0, 100);
    fd = open(path, O_RDWR);
    is(flock(fd, LOCK_EX), 0);
    is(open_file(&file), IDEM_E_LOCK);
    is(lseek(fd, 0, SEEK_END), 100);
    (void)close(fd);
    opens_as(0);
}

/* A process that opens the file and dies at call number `at`, or does not. */
static int opens_until(unsigned at)
{
    static process p;
    static idem_file its;

    expect_fault(&p, ALL, at, DIE, 0);
    if (setjmp(p.death) != 0) {
        bury(&p);
        return 1;
    }
    is(open_file(&its), IDEM_OK);
    bury(&p);
    return 0;
}

TEST(creation_may_die_at_every_call)
{
    unsigned at, again;
    int alive = 0, again_alive;

    for (at = 0; !alive; at++) {
        // .. and once more while what was left is cleared up.
        again = 0;
        do {
            (void)remove(path);
            alive = !opens_until(at);
            assert_nothing_in_it();
            again_alive = !opens_until(again++);
            assert_nothing_in_it();
            opens_as(0);
        } while (!again_alive);
    }
    assert_true(at > 10);
}

/* Opens `file` with something else before call number `at`; *result tells how
   it went.  Whether there was such a call. */
static int open_while(void (*aside)(void), unsigned at, int *result)
{
    static process p;

    expect_fault(&p, ALL, at, ASIDE, 0);
    p.aside = aside;
    *result = open_file(&file);
    me = &calm;
    return p.count > p.at;
}

static void other_opens(void)
{
    if (open_file(&other) == IDEM_OK)
        is(prog_byte(&other, 'o'), 0);
}

TEST(of_two_creators_one_gets_the_file)
{
    unsigned at, won = 0, lost = 0;
    int result;

    for (at = 0; ; at++) {
        (void)remove(path);
        memset(&other, 0, sizeof other);
        other.fd = -1;
        if (!open_while(other_opens, at, &result))
            break;
        is(result == IDEM_OK, other.fd < 0);
        assert_born(result == IDEM_OK ? 0 : 'o');
        if (result == IDEM_OK) {
            won++;
            close_file();
        } else {
            lost++;
            is(result, IDEM_E_LOCK);
            is(idem_file_close(&other), IDEM_OK);
        }
    }
    assert_true(won > 5 && lost > 2);
}

static unsigned other_dies_at;
static int other_died;

static void other_opens_and_dies(void)
{
    static process p;

    other_died = 0;
    expect_fault(&p, ALL, other_dies_at, DIE, 0);
    if (setjmp(p.death) == 0)
        other_opens();
    else
        other_died = 1;
    bury(&p);
}

/* Whatever the other has done: what it wrote is kept, and nothing is in the
   way. */
TEST(another_may_die_at_every_call_meanwhile)
{
    unsigned at;
    int result, more = 1;

    for (at = 0; more; at++) {
        other_dies_at = 0;
        do {
            int wrote;

            (void)remove(path);
            memset(&other, 0, sizeof other);
            more = open_while(other_opens_and_dies, at, &result);
            wrote = begins_with('o');
            is(result, IDEM_OK);
            close_file();
            opens_as(wrote ? 'o' : 0);
            other_dies_at++;
        } while (more && other_died);
    }
}

/* ---------------------------------------------------------------------------
   calls that fail
   ------------------------------------------------------------------------ */

/* Everything that is done with a file; the first result that is not 0. */
static int use(idem_file *f)
{
    const idem_storage *s = &f->storage;
    unsigned char bytes[100], back[100] = { 0 };
    int result = open_file(f);

    memset(bytes, 'u', sizeof bytes);
    if (!result)
        result = s->prog(s->ctx, 1000, bytes, sizeof bytes);
    if (!result)
        result = s->sync(s->ctx);
    if (!result)
        result = s->read(s->ctx, 1000, back, sizeof back);
    if (!result)
        assert_memory_equal(back, bytes, sizeof back);
    return result;
}

TEST(interrupted_and_halved_calls_are_resumed)
{
    static const int faults[] = { FAIL, HALF };
    static process p;
    unsigned at, i;
    int more;

    for (i = 0; i < COUNT(faults); i++)
        for (at = 0, more = 1; more; at++) {
            int which = READ | WRITE | (faults[i] == FAIL ? SYNC | LOCK : 0);

            (void)remove(path);
            synced = 0;
            expect_fault(&p, which, at, faults[i], EINTR);
            is(use(&file), 0);
            more = struck();
            is(synced, 3);              // zeros; name; ours
            close_file();
        }
    is(dropped, 0);
}

/* Uses the file while a call fails, then again while none does; *result is that
   of the former, *told its file.error.  Whether there was such a call. */
static int use_failing(int which, unsigned at, int error, int *result,
                       int *told)
{
    static process p;
    int more;

    (void)remove(path);
    expect_fault(&p, which, at, FAIL, error);
    *result = use(&file);
    more = struck();
    *told = file.error;
    (void)idem_file_close(&file);
    is(use(&file), 0);
    close_file();
    return more;
}

TEST(a_call_that_fails_is_told_and_does_no_harm)
{
    static const int errors[] = { EIO, ENOSPC, ENOLCK };
    const int which = OPEN | READ | WRITE | SYNC | LOCK | TRUNCATE;
    unsigned at, i;
    int result, told;

    for (i = 0; i < COUNT(errors); i++) {
        for (at = 0; use_failing(which, at, errors[i], &result, &told); at++) {
            if (result < 0)
                is(told, errors[i]);
            is(result, result < 0 ? IDEM_E_STORAGE : errors[i]);
        }
        is(result, 0);
        assert_true(at > 8);
    }
}

/* One at the name, which need not be there; one at what was opened. */
TEST(a_look_that_fails_does_no_harm)
{
    int result, told;

    assert_true(use_failing(STAT, 0, EIO, &result, &told));
    is(result, 0);
    assert_true(use_failing(STAT, 1, EIO, &result, &told));
    is(result, IDEM_E_STORAGE);
    is(told, EIO);
    assert_false(use_failing(STAT, 2, EIO, &result, &told));
}

TEST(what_reads_badly_is_not_taken_for_blank)
{
    static const int faults[] = { FAIL, ZERO };
    static process p;
    unsigned char bytes[2 * SIZE];
    size_t i;

    write_whole(path, 0, 2 * SIZE);
    for (i = 0; i < 2 * COUNT(faults); i++) {
        expect_fault(&p, READ, i % 2, faults[i / 2], EIO);
        is(open_file(&file), IDEM_E_STORAGE);
        assert_true(struck());
        is(file.error, EIO);
        is(read_whole(path, bytes, sizeof bytes), 2 * SIZE);
    }
    expect_fault(&p, READ, 1, FAIL, EINTR);
    opens_as(0);
    assert_true(struck());
}

TEST(what_need_not_be_told_does_no_harm)
{
    static process p;
    unsigned at;
    int more = 1;

    for (at = 0; more; at++) {
        (void)remove(path);
        expect_fault(&p, CLOSE | ADVISE, at, FAIL, EIO);
        is(use(&file), 0);
        more = struck();
        close_file();
        is(open_file(&file), IDEM_OK);
        close_file();
    }
    is(open_file(&file), IDEM_OK);
    expect_fault(&p, CLOSE, 0, FAIL, EIO);
    is(idem_file_close(&file), IDEM_E_STORAGE);
    is(file.error, EIO);
    assert_true(struck());
    is(open_file(&other), IDEM_OK);             // it is closed
}

TEST(a_full_disk_leaves_nothing_in_the_way)
{
    static process p;
    unsigned at;

    for (at = 0; at < 3; at++) {
        expect_fault(&p, WRITE, at, FAIL_ON, ENOSPC);
        is(idem_file_open(&file, path, 4096, SECTORS), IDEM_E_STORAGE);
        is(file.error, ENOSPC);
        assert_true(struck());
        assert_nothing_in_it();
    }
    opens_as(0);
}

TEST(transfers_of_nothing_end)
{
    static process p;
    char byte = 0;

    is(open_file(&file), IDEM_OK);
    expect_fault(&p, READ | WRITE, 0, ZERO, 0);
    is(prog_byte(&file, 'a'), EIO);
    assert_true(struck());
    expect_fault(&p, READ | WRITE, 0, ZERO, 0);
    is(file.storage.read(&file, 0, &byte, 1), EIO);
    assert_true(struck());
}

TEST(a_program_that_failed_may_be_repeated)
{
    static process p;

    is(open_file(&file), IDEM_OK);
    expect_fault(&p, WRITE, 0, FAIL, ENOSPC);
    is(prog_byte(&file, 'a'), ENOSPC);
    is(prog_byte(&file, 'a'), 0);
    assert_true(struck());
    is(file.error, 0);
    is(file.storage.sync(&file), 0);
    close_file();
    assert_born('a');
}

TEST(after_a_failed_sync_nothing_is_written_until_reopened)
{
    static const int errors[] = { EIO, ENOSPC, EDQUOT };
    static process p;
    char byte = 0;
    size_t i;

    for (i = 0; i < COUNT(errors); i++) {
        is(open_file(&file), IDEM_OK);
        is(prog_byte(&file, 'a'), 0);
        expect_fault(&p, SYNC, 0, FAIL, errors[i]);
        is(file.storage.sync(&file), errors[i]);
        assert_true(struck());
        is(dropped, i + 1);                     // the kernel is not believed
        is(file.error, errors[i]);
        is(prog_byte(&file, 'b'), errors[i]);
        is(file.storage.sync(&file), errors[i]);
        is(file.storage.read(&file, 0, &byte, 1), 0);
        is(byte, 'a');
        close_file();
    }
    is(open_file(&file), IDEM_OK);
    is(prog_byte(&file, 'c'), 0);
    is(file.storage.sync(&file), 0);
}

TEST(what_was_not_synced_is_synced_before_it_is_read)
{
    static process p;
    unsigned at;

    opens_as(0);
    for (at = 0; at < 2; at++) {                // the file, its name
        expect_fault(&p, SYNC, at, FAIL, EIO);
        is(open_file(&file), IDEM_E_STORAGE);
        is(file.error, EIO);
        assert_true(struck());
    }
    expect_fault(&p, SYNC, 1, FAIL, EINVAL);    // not everywhere possible
    is(open_file(&file), IDEM_OK);
    assert_true(struck());
}

/* ---------------------------------------------------------------------------
   a table in a file
   ------------------------------------------------------------------------ */

static idem_config config = {
    .capacity = CAPACITY, .key_max = KEY_MAX, .response_max = RESPONSE_MAX,
    .secret = "sixteen secrets", .storage = &file.storage, .max_attempts = 255
};
static idem_table table;
static uint32_t memory[IDEM_JOURNAL_MEMORY_SIZE(CAPACITY, KEY_MAX, RESPONSE_MAX,
                                                0, 1) / 4];
static idem_claim claim;
static char buffer[RESPONSE_MAX];

static int open_table(void)
{
    return idem_open(&table, &config, memory, sizeof memory, 0);
}

/* Opens file and table, as after a restart. */
static void start(void)
{
    me = &calm;
    is(open_file(&file), IDEM_OK);
    is(open_table(), IDEM_OK);
    is(table.stats.lost, 0);
}

static void stop(void)
{
    me = &calm;
    close_file();
}

static int ask(const char *key)
{
    idem_request request = { .key = key, .key_len = strlen(key),
                             .payload = key, .payload_len = strlen(key) };
    idem_reply reply = { .buffer = buffer, .buffer_size = sizeof buffer };

    return idem_begin(&table, &claim, &reply, &request, 0);
}

static int complete(const char *response)
{
    idem_outcome outcome = { .response = response,
                             .response_len = strlen(response) + 1 };

    return idem_complete(&table, &claim, &outcome, 0);
}

static int forget(const char *key)
{
    idem_request request = { .key = key, .key_len = strlen(key) };

    return idem_forget(&table, &request, 0);
}

static void finish(const char *key)
{
    is(ask(key), IDEM_EXECUTE);
    is(complete("poured"), IDEM_OK);
}

static void replays(const char *key)
{
    is(ask(key), IDEM_REPLAY);
    assert_string_equal(buffer, "poured");
}

TEST(what_a_table_answered_outlives_it)
{
    unsigned char before[SIZE], after[SIZE];

    start();
    finish("a");
    is(ask("b"), IDEM_EXECUTE);
    stop();
    is(read_whole(path, before, SIZE), SIZE);
    start();
    is(read_whole(path, after, SIZE), SIZE);
    assert_memory_equal(before, after, SIZE);   // opening writes nothing
    replays("a");
    is(ask("b"), IDEM_RECOVER);
    is(claim.attempt, 2);
    is(ask("c"), IDEM_EXECUTE);
}

TEST(foreign_bytes_are_kept_until_formatted)
{
    write_whole(path, 'f', SIZE);
    is(open_file(&file), IDEM_OK);
    is(open_table(), IDEM_E_FORMAT);
    assert_foreign(path, SIZE);
    is(idem_format(&table, &config, memory, sizeof memory, 0), IDEM_OK);
    finish("a");
    stop();
    start();
    replays("a");
}

TEST(a_full_disk_loses_nothing)
{
    process p;
    idem_claim mine;
    int i, result;

    start();
    finish("z");
    expect_fault(&p, WRITE, 0, FAIL, ENOSPC);
    is(ask("a"), IDEM_E_STORAGE);
    assert_true(struck());
    is(table.storage_error, ENOSPC);
    is(ask("a"), IDEM_EXECUTE);                 // nothing was granted
    mine = claim;
    expect_fault(&p, WRITE, 0, FAIL_ON, EDQUOT);
    for (i = 0; i < 100; i++) {
        assert_true(ask("b") < 0);
        claim = mine;
        result = complete("poured");
        assert_true(result == IDEM_E_STORAGE || result == IDEM_E_SPACE);
    }
    assert_true(struck());
    is(table.storage_error, EDQUOT);
    is(complete("poured"), IDEM_OK);
    is(ask("b"), IDEM_EXECUTE);
    stop();
    start();
    replays("z");
    replays("a");
    is(ask("b"), IDEM_RECOVER);
}

TEST(after_a_failed_sync_the_table_must_be_reopened)
{
    process p;
    int answer;

    start();
    finish("a");
    is(ask("b"), IDEM_EXECUTE);
    expect_fault(&p, SYNC, 0, FAIL, EIO);
    is(complete("poured"), IDEM_E_STORAGE);
    assert_true(struck());
    is(table.storage_error, EIO);
    is(complete("poured"), IDEM_E_STORAGE);
    is(ask("c"), IDEM_E_STORAGE);
    is(forget("a"), IDEM_E_STORAGE);
    is(idem_sync(&table), IDEM_E_STORAGE);
    is(open_table(), IDEM_OK);                  // alone is not enough
    is(ask("c"), IDEM_E_STORAGE);
    stop();
    start();
    replays("a");
    is(ask("c"), IDEM_EXECUTE);
    answer = ask("b");
    assert_true(answer == IDEM_RECOVER || answer == IDEM_REPLAY);
}

/* In a child; the number of what is wrong. */
static int use_inherited_table(void)
{
    if (complete("poured") != IDEM_E_STORAGE || table.storage_error != EPERM)
        return 1;
    return ask("b") == IDEM_E_STORAGE ? 0 : 2;
}

TEST(a_childs_table_refuses_and_the_parents_goes_on)
{
    start();
    is(ask("a"), IDEM_EXECUTE);
    is(elsewhere(use_inherited_table), 0);
    is(complete("poured"), IDEM_OK);
    stop();
    start();
    replays("a");
    is(ask("b"), IDEM_EXECUTE);
}

/* ---------------------------------------------------------------------------
   every call of a table's life fails, is cut short, or is the last
   ------------------------------------------------------------------------ */

// What a sender knows of its key.
typedef struct knowledge {
    int asked;                  // a begin may have been granted
    int executed;               // since it was asked first
    int done;                   // the completion was reported
    int forgetting;             // forget was not reported
    char response[RESPONSE_MAX];    // of the completion that was tried last
} knowledge;

static const char *const names[CAPACITY] = { "k", "l", "m", "n" };
static knowledge known[CAPACITY];
static unsigned serial;

/* Any answer must be one that what the sender knows allows. */
static void known_answer(const knowledge *it, int answer)
{
    switch (answer) {
    case IDEM_EXECUTE:
        assert_true((!it->executed && !it->done) || it->forgetting);
        break;
    case IDEM_RECOVER:
        assert_true(it->asked && !it->done);
        assert_true(claim.attempt > 1);
        break;
    case IDEM_REPLAY:
        assert_true(it->asked);
        assert_string_equal(buffer, it->response);
        break;
    case IDEM_BUSY:             // the completion was refused twice
        assert_true(it->executed && !it->done);
        break;
    default:
        is(answer, IDEM_E_STORAGE);
    }
}

/* One command, executed and completed if that is the answer. */
static int known_command(unsigned k)
{
    knowledge *it = &known[k];
    int answer, result;

    it->asked = 1;
    answer = ask(names[k]);
    known_answer(it, answer);
    if (answer != IDEM_EXECUTE && answer != IDEM_RECOVER)
        return answer;
    memset(it, 0, sizeof *it);
    it->asked = it->executed = 1;
    (void)snprintf(it->response, sizeof it->response, "%015u", ++serial);
    result = complete(it->response);
    if (result == IDEM_E_STORAGE)
        result = complete(it->response);
    it->done = result == IDEM_OK;
    return result;
}

static int known_forget(unsigned k)
{
    int result;

    known[k].forgetting = 1;
    result = forget(names[k]);
    if (result == IDEM_OK || result == IDEM_E_NOT_FOUND)
        memset(&known[k], 0, sizeof known[k]);
    return result;
}

/* Commands until the journal has gone round. */
static void live_a_life(void)
{
    unsigned i;

    for (i = 0; i < 100; i++) {
        int result = known_command(i % CAPACITY);

        if (result != IDEM_E_STORAGE && i % 3 == 0)
            result = known_forget((i + 2) % CAPACITY);
        if (result == IDEM_E_STORAGE && file.error) {
            (void)idem_file_close(&file);
            start();
        }
    }
}

TEST(after_any_fault_every_answer_is_right)
{
    static const struct { int which, fault, error; } cases[] = {
        { READ | WRITE | SYNC, FAIL, EIO }, { WRITE, FAIL, ENOSPC },
        { READ | WRITE | SYNC, FAIL, EINTR }, { READ | WRITE, HALF, 0 },
        { ALL, DIE, 0 },
    };
    static process p;
    static unsigned at, i, k, more;

    for (i = 0; i < COUNT(cases); i++)
        for (at = 0, more = 1; more; at++) {
            (void)remove(path);
            memset(known, 0, sizeof known);
            start();
            expect_fault(&p, cases[i].which, at, cases[i].fault,
                         cases[i].error);
            if (setjmp(p.death) == 0) {
                live_a_life();
                more = struck();
                stop();
            } else {
                (void)close(file.fd);           // and nothing else
            }
            start();
            for (k = 0; k < CAPACITY; k++) {
                int answer = ask(names[k]);

                known_answer(&known[k], answer);
                assert_true(answer > 0 && answer != IDEM_BUSY);
            }
            stop();
        }
}

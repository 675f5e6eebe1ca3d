/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that a journal's file is complete or blank, that one opening alone has
 * it, that it reports the error of the system, and that it changes no file that
 * it refuses, whichever system call fails, is interrupted, does half, or is the
 * last.
 *
 * The implementation here is a separate copy whose system calls go through an
 * emulated kernel.  That can fail a call, do half of it, run something else
 * before it, or let the process die there: open files are closed, as by kill
 * -9, and the test goes on.  It does not sync.  What needs real processes,
 * signals and syncs is in tests/file/file.sh.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* --------------------------------------------------------------- the kernel */

enum {
    OPEN = 1, CLOSE = 2, READ = 4, WRITE = 8, SYNC = 16, LOCK = 32, STAT = 64,
    TRUNCATE = 128, ADVISE = 256, LINK = 512, ALL = 1023
};

enum { NOTHING, FAIL, HALF, ZERO, DIE, ASIDE };

#define CALLS_KEPT 200

// A simulated process: what happens to it, and what it has open.
typedef struct process {
    int which;                  // calls that are counted
    unsigned count;
    unsigned at;                // the number of the call at which ..
    int fault;                  // .. this happens
    int error;
    int fds[8];
    unsigned fd_count;
    jmp_buf death;
} process;

// That to which nothing happens, one, and what runs aside of that.
static process processes[3];
static process *me = processes, *chosen = processes + 1;
static void (*aside)(void);

static int synced;              // syncs that succeeded
static struct stat last_synced; // what the last of them was of
static int dropped;             // times the cache was dropped
static int history[CALLS_KEPT]; // calls, in their order
static unsigned history_len;

static int strike(int call)
{
    process *self = me;

    history[history_len++ % CALLS_KEPT] = call;
    if (!(self->which & call) || self->count++ < self->at)
        return NOTHING;
    errno = self->error;
    if (self->count != self->at + 1)
        return NOTHING;
    if (self->fault == DIE)
        longjmp(self->death, 1);
    if (self->fault == ASIDE) {
        me = processes;
        chosen++;
        aside();
        chosen--;
        me = self;
        return NOTHING;
    }
    return self->fault;
}

/* The mode counts if a file is made. */
static int kernel_open(const char *path, int flags, int mode, ...)
{
    int fd = strike(OPEN) == FAIL ? -1 : open(path, flags, mode);

    if (fd >= 0 && me != processes && me->fd_count < COUNT(me->fds))
        me->fds[me->fd_count++] = fd;
    return fd;
}

/* Closes, whatever it answers then. */
static int kernel_close(int fd)
{
    int fault = strike(CLOSE), error = errno;

    for (unsigned i = 0; i < me->fd_count; i++)
        if (me->fds[i] == fd)
            me->fds[i--] = me->fds[--me->fd_count];
    if (close(fd) < 0)
        return -1;
    errno = error;
    return fault == FAIL ? -1 : 0;
}

#define TRANSFER(name, call, pointer)                                          \
    static ssize_t kernel_##name(int fd, pointer bytes, size_t len, off_t at)  \
    {                                                                          \
        switch (strike(call)) {                                                \
        case FAIL: return -1;                                                  \
        case HALF: return name(fd, bytes, (len + 1) / 2, at);                  \
        case ZERO: return 0;                                                   \
        default:   return name(fd, bytes, len, at);                            \
        }                                                                      \
    }

TRANSFER(pread, READ, void *)
TRANSFER(pwrite, WRITE, const void *)

static int kernel_sync(int fd)
{
    if (strike(SYNC) == FAIL || fstat(fd, &last_synced) < 0)
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

static unsigned mounted;        // over every path: a device of that number more

static int kernel_stat(const char *path, struct stat *it)
{
    int failed = strike(STAT) == FAIL || stat(path, it) < 0;

    it->st_dev += mounted;
    return -failed;
}

// What statx answers in a container that forbids it; 0: it works.
static int forbidden;

#ifdef STATX_INO
/* No times are asked for: after that a sync would wait for them. */
static int kernel_statx(int fd, const char *path, int flags, unsigned mask,
                        struct statx *it)
{
    int failed = strike(STAT) == FAIL || statx(fd, path, flags, mask, it) < 0;

    is(mask, STATX_INO | STATX_SIZE | STATX_TYPE);
    it->stx_dev_major += path[0] ? mounted : 0;
    if (forbidden)
        errno = forbidden;
    return forbidden ? -1 : -failed;
}
#endif

// No macro is expanded in itself: in each the system's function is called.
#define open(path, ...) kernel_open(path, __VA_ARGS__, 0)
#define close kernel_close
#define pread(fd, dst, len, at) kernel_pread(fd, dst, len, at)
#define pwrite(fd, src, len, at) kernel_pwrite(fd, src, len, at)
#define fsync kernel_sync
#define fdatasync kernel_sync
#define posix_fadvise(fd, at, len, advice) kernel_fadvise(fd, at, len, advice)
#define UNLESS_FAILING(call, value) (strike(call) == FAIL ? -1 : (value))
#define flock(fd, how) UNLESS_FAILING(LOCK, flock(fd, how))
#define stat(path, it) kernel_stat(path, it)
#define fstat(fd, it) UNLESS_FAILING(STAT, fstat(fd, it))
#define statx(fd, path, flags, mask, it) kernel_statx(fd, path, flags, mask, it)
#define readlink(path, to, size)                                               \
    UNLESS_FAILING(LINK, readlink(path, to, size))
#define ftruncate(fd, size) UNLESS_FAILING(TRUNCATE, ftruncate(fd, size))

// Misuse is counted, and refused all the same.
static int asserted;
#define IDEM_ASSERT(x) ((x) ? (void)0 : (void)asserted++)
#define IDEM_FILE_STORAGE
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

/* From here on `fault` happens at call number `at` of those in `which`. */
static void expect_fault(int which, unsigned at, int fault, int error)
{
    memset(chosen, 0, sizeof *chosen);
    chosen->which = which;
    chosen->at = at;
    chosen->fault = fault;
    chosen->error = error;
    me = chosen;
}

/* No more of it; whether it has happened. */
static int struck(void)
{
    me = processes;
    return chosen->count > chosen->at;
}

/* It happens while this runs; whether it did.  What a process that died has
   open the system closes. */
static int strikes(int which, unsigned at, int fault, int error,
                   void (*run)(void))
{
    expect_fault(which, at, fault, error);
    if (setjmp(chosen->death) == 0) {
        run();
    } else {
        me = processes;
        while (chosen->fd_count)
            (void)close(chosen->fds[--chosen->fd_count]);
    }
    return struck();
}

/* How many of these calls there were since this was asked last. */
static unsigned called(int which)
{
    unsigned count = 0;

    assert_true(history_len <= CALLS_KEPT);
    while (history_len > 0)
        count += (history[--history_len] & which) != 0;
    return count;
}

/* -------------------------------------------------------------------- files */

enum { SECTOR = 512, SECTORS = 6, SIZE = SECTOR * SECTORS };

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
    me = processes;
    dropped = asserted = 0;
    forbidden = 0;
    mounted = 0;
    descriptors_before = descriptors();
    return 0;
}

/* No descriptor may be lost, and no file left. */
static int teardown(void **state)
{
    static const char *const names[] = {
        "journal", "moved", "real", "folder/journal", "folder/real", "folder"
    };

    (void)state;
    me = processes;
    (void)(file.storage.ctx && idem_file_close(&file));
    (void)(other.storage.ctx && idem_file_close(&other));
    for (size_t i = 0; i < COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)remove(path);
    }
    return rmdir(dir) < 0 || descriptors() != descriptors_before ? -1 : 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown, void, )

static int open_file(idem_file *f)
{
    return idem_file_open(f, path, SECTOR, SECTORS);
}

static int result;

static void opens(void)
{
    result = open_file(&file);
}

static void close_file(void)
{
    is(idem_file_close(&file), IDEM_OK);
}

/* Makes a file of `len` bytes, all the same but one. */
static void write_marked(int byte, size_t len, size_t at, int mark)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    for (size_t i = 0; i < len; i++)
        (void)fputc(i == at ? mark : byte, out);
    is(fclose(out), 0);
}

static void write_whole(int byte, size_t len)
{
    write_marked(byte, len, len, byte);
}

static unsigned char contents[8 * SIZE];    // of the file, as read last

/* How many; 0 if there is no file. */
static size_t read_whole(void)
{
    FILE *in = fopen(path, "rb");
    size_t len = in ? fread(contents, 1, sizeof contents, in) : 0;

    assert_true(len < sizeof contents);
    (void)(in && fclose(in));
    return len;
}

/* The file's bytes from `at` on are these. */
static void assert_rest(size_t at, size_t len, int byte)
{
    is(read_whole(), len);
    for (; at < len; at++)
        is(contents[at], byte);
}

/* There is no file, or one without anything in it. */
static void assert_nothing_in_it(void)
{
    assert_rest(0, read_whole(), 0);
}

/* The file is whole, without holes, and begins with `first` and zeros. */
static void assert_born(unsigned char first)
{
    struct stat it;

    assert_rest(1, SIZE, 0);
    is(contents[0], first);
    is(stat(path, &it), 0);
    assert_true(it.st_blocks * 512 >= SIZE);
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

/* ----------------------------------------------------------------- one file */

TEST(a_new_file_is_zeros_and_the_owners)
{
    struct stat it;

    opens_as(0);
    is(file.error, 0);
    is(stat(path, &it), 0);
    is(it.st_mode & 0777, 0600);
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

    // Also over the end of a sector.
    for (uint32_t at = 0; at + 6 <= SIZE; at += 507) {
        is(open_file(&file), IDEM_OK);
        is(s->prog(s->ctx, at, "first", 6), 0);
        is(s->prog(s->ctx, at + 1, "IRS", 3), 0);
        is(s->sync(s->ctx), 0);
        close_file();
        history_len = 0;
        is(open_file(&file), IDEM_OK);
        is(called(WRITE | TRUNCATE), 0);
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

    is(idem_file_open(NULL, path, SECTOR, SECTORS), IDEM_E_ARG);
    is(idem_file_open(&file, NULL, SECTOR, SECTORS), IDEM_E_ARG);
    for (size_t i = 0; i < COUNT(sizes); i++)
        is(idem_file_open(&file, path, sizes[i][0], sizes[i][1]), IDEM_E_ARG);
    is(idem_file_close(NULL), IDEM_E_ARG);
    memset(&file, 0, sizeof file);
    is(idem_file_close(&file), IDEM_E_ARG);     // never opened
    is(asserted, 4 + COUNT(sizes));
    is(access(path, F_OK), -1);
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
    is(chdir(before), 0);
    is(prog_byte(&file, 'r'), 0);
    is(file.storage.sync(&file), 0);            // is found from here too
    close_file();
    opens_as('r');
    // The longest path that the system takes, from the root and from here.
    for (int more = 0; more < 4; more++) {
        size_t len = 4095 + (size_t)(more & 1);

        memset(name, '/', sizeof name);
        strcpy(name + len - strlen(path), path);
        if (more > 1) {
            is(chdir(dir), 0);
            memset(name, '/', len);
            name[0] = '.';
            strcpy(name + len - strlen(dir) - 1 - strlen("journal"), "journal");
        }
        is(idem_file_open(&file, name, SECTOR, SECTORS),
           more & 1 ? IDEM_E_STORAGE : IDEM_OK);
        is(file.error, more & 1 ? ENAMETOOLONG : 0);
        is(chdir(before), 0);
        if (!(more & 1))
            close_file();
    }
    opens_as('r');
}

TEST(in_a_folder_that_is_gone_a_relative_path_names_nothing)
{
    char before[1024], folder[320];

    assert_non_null(getcwd(before, sizeof before));
    (void)snprintf(folder, sizeof folder, "%s/folder", dir);
    is(mkdir(folder, 0700), 0);
    is(chdir(folder), 0);
    is(rmdir(folder), 0);
    is(idem_file_open(&file, "journal", SECTOR, SECTORS), IDEM_E_STORAGE);
    is(file.error, ENOENT);
    is(chdir(before), 0);
    is(idem_file_open(&file, "", SECTOR, SECTORS), IDEM_E_STORAGE);
    is(file.error, ENOENT);
}

/* ---------------------------------------------------- one opening at a time */

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

/* In a child of the process that opened `file`; whether all is as it must be.
   The parent has the lock also when the child has closed the file. */
static int is_a_childs(void)
{
    const idem_storage *s = &file.storage;
    char byte = 'c';

    return s->read(s->ctx, 0, &byte, 1) == EPERM && byte == 'c' &&
           s->prog(s->ctx, 0, &byte, 1) == EPERM && s->sync(s->ctx) == EPERM &&
           s->sync_unlocked(s->ctx) == EPERM &&
           open_other() == IDEM_E_LOCK && idem_file_close(&file) == IDEM_OK &&
           open_other() == IDEM_E_LOCK;
}

TEST(a_child_touches_nothing_and_does_not_unlock)
{
    is(open_file(&file), IDEM_OK);
    is(elsewhere(is_a_childs), 1);
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

/* --------------------------------------------------------- what is not ours */

/* One byte shows that a file is somebody's, wherever it is; or all of them. */
TEST(a_file_of_another_size_that_is_not_all_zeros_is_not_touched)
{
    static const size_t sizes[] = { 1, SIZE - 1, SIZE + 1, 2 * SIZE };
    struct stat before, after;

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t part = 0; part <= 9; part++) {
            size_t at = (sizes[i] - 1) * part / 8 % sizes[i];

            write_marked(part == 9 ? 'f' : 0, sizes[i], at, 'f');
            is(stat(path, &before), 0);
            is(open_file(&file), IDEM_E_FORMAT);
            is(read_whole(), sizes[i]);
            is(contents[at], 'f');
            is(stat(path, &after), 0);
            is(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
            is(open_file(&other), IDEM_E_FORMAT);       // not locked
            assert_int_not_equal(prog_byte(&file, 'x'), 0);
        }
}

TEST(a_foreign_file_is_not_touched_whatever_fails)
{
    static const int faults[] = { FAIL, HALF, ZERO, DIE };

    write_whole('f', SIZE + 1);
    for (unsigned i = 0; i < COUNT(faults); i++)
        for (unsigned at = 0; strikes(ALL, at, faults[i], EIO, opens); at++) {
            assert_true(result < 0);
            assert_rest(0, SIZE + 1, 'f');
        }
}

TEST(a_blank_file_of_another_size_is_given_its_size)
{
    static const size_t sizes[] = { 0, 1, SIZE - 1, SIZE + 1, 2 * SIZE };

    for (size_t i = 0; i < COUNT(sizes); i++) {
        write_whole(0, sizes[i]);
        opens_as(0);
    }
    // One that has its size and no blocks is filled too.
    write_whole(0, 0);
    is(truncate(path, SIZE), 0);
    is(open_file(&file), IDEM_OK);
    close_file();
    assert_born(0);
    // Of a journal that was never written too.
    is(idem_file_open(&file, path, 2 * SECTOR, SECTORS), IDEM_OK);
    close_file();
    assert_rest(0, 2 * SIZE, 0);
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
    write_whole(0, 0);
    is(truncate(path, size), 0);
    history_len = 0;
    is(open_file(&file), IDEM_E_FORMAT);
    is(called(READ | WRITE | TRUNCATE), 0);
    is(stat(path, &it), 0);
    assert_true(it.st_size == size);
}

/* A process that has closed its standard input gets 0 for the next file. */
TEST(descriptor_0_is_one_as_any_other)
{
    int input = dup(0);

    (void)close(0);
    is(open_file(&file), IDEM_OK);
    is(file.fd, 0);
    is(file.storage.sync_unlocked(file.storage.ctx), 0);
    is(idem_file_close(&file), IDEM_OK);
    is(fcntl(0, F_GETFD), -1);
    if (input >= 0) {
        is(dup2(input, 0), 0);
        is(close(input), 0);
    }
}

TEST(a_path_that_is_too_long_is_not_copied)
{
    static struct {
        idem_file file;
        char guard[4200];
    } here;
    static char name[sizeof here.guard];

    for (size_t len = 4060; len + 1 < sizeof name; len++)
        for (int absolute = 0; absolute < 2; absolute++) {
            memset(here.guard, 'g', sizeof here.guard);
            memset(name, 'j', len);
            name[0] = absolute ? '/' : 'j';
            name[len] = 0;
            is(idem_file_open(&here.file, name, SECTOR, SECTORS),
               IDEM_E_STORAGE);
            is(here.file.error, ENAMETOOLONG);
            for (size_t i = 0; i < sizeof here.guard; i++)
                assert_true(here.guard[i] == 'g');
        }
}

static void other_makes_a_pipe(void)
{
    is(remove(path), 0);
    is(mkfifo(path, 0600), 0);
}

TEST(only_a_regular_file_is_a_journal)
{
    is(mkdir(path, 0700), 0);
    is(open_file(&file), IDEM_E_FORMAT);
    is(file.fd, -1);
    is(file.error, 0);
    is(idem_file_open(&file, "/", SECTOR, SECTORS), IDEM_E_FORMAT);
    other_makes_a_pipe();
    history_len = 0;
    is(open_file(&file), IDEM_E_FORMAT);
    is(called(OPEN), 0);                        // being opened is an event
    is(remove(path), 0);
    opens_as(0);
    aside = other_makes_a_pipe;
    assert_true(strikes(OPEN, 0, ASIDE, 0, opens));
    is(result, IDEM_E_FORMAT);
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

/* .. for that is where the new name is; the link was there before. */
TEST(the_folder_of_a_symbolic_links_target_is_synced)
{
    char folder[320], inner[340], real[320];
    struct stat it;

    (void)snprintf(folder, sizeof folder, "%s/folder", dir);
    (void)snprintf(inner, sizeof inner, "%s/real", folder);
    (void)snprintf(real, sizeof real, "%s/real", dir);
    is(mkdir(folder, 0700), 0);
    is(symlink("folder/real", path), 0);
    is(open_file(&file), IDEM_OK);
    is(stat(folder, &it), 0);
    assert_true(last_synced.st_ino == it.st_ino);
    close_file();
    is(remove(inner), 0);
    is(symlink(real, inner), 0);                // a link to a link
    is(open_file(&file), IDEM_OK);
    is(stat(dir, &it), 0);
    assert_true(last_synced.st_ino == it.st_ino);
    close_file();
}

static void other_makes_a_loop(void)
{
    (void)remove(path);
    is(symlink("journal", path), 0);
}

TEST(a_link_that_leads_nowhere_is_refused)
{
    char target[4095];

    other_makes_a_loop();
    is(open_file(&file), IDEM_E_STORAGE);
    is(file.error, ELOOP);
    is(remove(path), 0);
    aside = other_makes_a_loop;
    assert_true(strikes(LINK, 0, ASIDE, 0, opens));
    is(result, IDEM_E_STORAGE);
    is(file.error, ELOOP);
    // A name that the system would take, and we have no room for.
    for (size_t i = 0; i < sizeof target; i++)
        target[i] = i % 2 ? '/' : '.';
    strcpy(target + sizeof target - sizeof "real", "real");
    is(remove(path), 0);
    is(symlink(target, path), 0);
    is(open_file(&file), IDEM_E_STORAGE);
    is(file.error, ENAMETOOLONG);
}

/* --------------------------------------- a name that comes to mean another */

/* The name now means nothing, or another file. */
static void move_away(void)
{
    char moved[320];

    (void)snprintf(moved, sizeof moved, "%s/moved", dir);
    is(rename(path, moved), 0);
}

static void remove_it(void)
{
    is(remove(path), 0);
}

static void put_another_there(void)
{
    move_away();
    is(open_file(&other), IDEM_OK);
    is(idem_file_close(&other), IDEM_OK);
}

static void put_a_restored_one_there(void)
{
    char restored[sizeof path];

    (void)snprintf(restored, sizeof restored, "%s/real", dir);
    is(idem_file_open(&other, restored, SECTOR, SECTORS), IDEM_OK);
    is(idem_file_close(&other), IDEM_OK);
    is(rename(restored, path), 0);
}

static void put_a_pipe_there(void)
{
    move_away();
    is(mkfifo(path, 0600), 0);
}

static void let_a_link_point_elsewhere(void)
{
    move_away();
    is(symlink("real", path), 0);
}

static void truncate_it(void)
{
    is(truncate(path, 0), 0);
}

static void make_it_longer(void)
{
    is(truncate(path, SIZE + 1), 0);
}

static void (*const changes[])(void) = {
    move_away, remove_it, put_another_there, put_a_restored_one_there,
    put_a_pipe_there, let_a_link_point_elsewhere, truncate_it, make_it_longer
};

/* Nothing can be promised any more for what the file holds: it will not be
   found when the device starts again. */
TEST(a_file_that_loses_its_name_or_size_fails_the_next_sync)
{
    const idem_storage *s = &file.storage;
    char byte;

    for (size_t i = 0; i < COUNT(changes); i++) {
        is(open_file(&file), IDEM_OK);
        is(prog_byte(&file, 'a'), 0);
        is(s->sync(s->ctx), 0);
        changes[i]();
        is(prog_byte(&file, 'b'), 0);
        is(s->sync(s->ctx), ESTALE);
        is(file.error, ESTALE);
        is(prog_byte(&file, 'c'), ESTALE);
        is(s->sync(s->ctx), ESTALE);
        is(s->sync_unlocked(s->ctx), ESTALE);
        is(s->read(s->ctx, 0, &byte, 1), 0);
        is(byte, 'b');
        close_file();
        (void)remove(path);
        opens_as(0);
        is(remove(path), 0);
    }
}

TEST(a_file_of_the_same_number_on_another_device_is_another)
{
    is(open_file(&file), IDEM_OK);
    mounted = 1;
    is(file.storage.sync(&file), ESTALE);
}

/* It had its name when it was opened: between that and the lock it lost it. */
TEST(the_file_that_has_the_name_is_the_one_that_is_locked)
{
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct stat it, named;

        opens_as(0);
        aside = changes[i];
        assert_true(strikes(LOCK, 0, ASIDE, 0, opens));
        if (changes[i] == put_a_pipe_there) {
            is(result, IDEM_E_FORMAT);
        } else {
            is(result, IDEM_OK);
            is(fstat(file.fd, &it), 0);
            is(stat(path, &named), 0);
            assert_true(it.st_ino == named.st_ino);
            is(open_file(&other), IDEM_E_LOCK);
            is(file.storage.sync(&file), 0);
            close_file();
        }
        is(remove(path), 0);
    }
}

static void other_takes_the_name(void)
{
    move_away();
    is(open_file(&other), IDEM_OK);
}

static unsigned times;

static void move_away_each_time(void)
{
    move_away();
    processes[1].at = processes[1].count;       // once more
    times++;
}

TEST(a_name_that_is_taken_by_another_or_does_not_stay_is_refused)
{
    aside = other_takes_the_name;
    assert_true(strikes(LOCK, 0, ASIDE, 0, opens));
    is(result, IDEM_E_LOCK);
    is(idem_file_close(&other), IDEM_OK);
    aside = move_away_each_time;
    times = 0;
    (void)strikes(LOCK, 0, ASIDE, 0, opens);
    is(result, IDEM_E_STORAGE);
    is(file.error, ESTALE);
    assert_true(times > 2 && times < 20);
    is(file.fd, -1);
}

/* -------------------------------- creators that die, and creators that meet */

TEST(a_living_creator_is_left_alone)
{
    int fd;

    write_whole(0, 100);
    fd = open(path, O_RDWR);
    is(flock(fd, LOCK_EX), 0);
    is(open_file(&file), IDEM_E_LOCK);
    is(lseek(fd, 0, SEEK_END), 100);
    (void)close(fd);
    opens_as(0);
}

static unsigned other_dies_at;
static int other_lives;

static void other_opens(void)
{
    if (open_file(&other) == IDEM_OK)
        is(prog_byte(&other, 'o'), 0);
}

static void other_opens_and_may_die(void)
{
    other_lives = !strikes(ALL, other_dies_at++, DIE, 0, other_opens);
}

/* What one that dies wrote is kept, and nothing is in the way. */
TEST(of_two_creators_one_gets_the_file_and_one_may_die_at_every_call)
{
    unsigned at, won = 0, lost = 0;
    int more = 1;

    aside = other_opens_and_may_die;
    for (at = 0; more; at++) {
        other_dies_at = 0;
        do {
            unsigned char first;

            (void)remove(path);
            memset(&other, 0, sizeof other);
            other.fd = -1;
            other_lives = 0;
            more = strikes(ALL, at, ASIDE, 0, opens);
            first = read_whole() == SIZE && contents[0] == 'o' ? 'o' : 0;
            won += other_lives && other.fd < 0;
            if (other_lives && other.fd >= 0) {
                lost++;
                is(result, IDEM_E_LOCK);
                is(first, 'o');
                is(idem_file_close(&other), IDEM_OK);
            } else {
                is(result, IDEM_OK);
                close_file();
            }
            opens_as(first);
        } while (more && !other_lives);
    }
    assert_true(won > 5 && lost > 2);
}

/* ---------------------------------------------------------- calls that fail */

/* Everything that is done with a file, until a result that is not 0. */
static void uses(void)
{
    const idem_storage *s = &file.storage;
    unsigned char bytes[100], back[100] = { 0 };

    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    opens();
    if (!result)
        result = s->prog(s->ctx, 1000, bytes, sizeof bytes);
    if (!result)
        result = s->sync(s->ctx);
    if (!result)
        result = s->read(s->ctx, 1000, back, sizeof back);
    if (!result)
        assert_memory_equal(back, bytes, sizeof back);
}

/* Makes a file of that many zeros, or none if they are none, and uses it while a
   call fails; whether there was such a call. */
static int use_failing(size_t size, int which, unsigned at, int fault,
                       int error)
{
    (void)remove(path);
    if (size)
        write_whole(0, size);
    synced = dropped = 0;
    return strikes(which, at, fault, error, uses);
}

/* .. and then without; what was in the way is nothing. */
static void use_again(void)
{
    (void)idem_file_close(&file);
    uses();
    is(result, 0);
    close_file();
}

/* What is blank reads as that, and what was not synced is synced before it is
   read. */
TEST(a_call_that_fails_is_reported_or_resumed_and_does_no_harm)
{
    static const size_t sizes[] = { 0, SIZE, 2 * SIZE };
    static const struct { int which, fault, error, expected; } rows[] = {
        { OPEN | READ | WRITE | SYNC | LOCK | TRUNCATE, FAIL, EIO, EIO },
        { OPEN | READ | WRITE | SYNC | LOCK | TRUNCATE, FAIL, ENOSPC, ENOSPC },
        { OPEN | READ | WRITE | SYNC | LOCK | TRUNCATE, FAIL, ENOLCK, ENOLCK },
        { READ | WRITE, ZERO, 0, EIO },
        { READ | WRITE | SYNC | LOCK, FAIL, EINTR, 0 },
        { READ | WRITE, HALF, 0, 0 },
        // That the cache stays, or the directory is closed, is not reported.
        { CLOSE | ADVISE, FAIL, EIO, 0 },
    };

    for (size_t i = 0; i < COUNT(rows) * COUNT(sizes); i++) {
        size_t size = sizes[i % COUNT(sizes)];
        int expected = rows[i / COUNT(sizes)].expected;
        unsigned at = 0;
        while (use_failing(size, rows[i / COUNT(sizes)].which, at,
                           rows[i / COUNT(sizes)].fault,
                           rows[i / COUNT(sizes)].error)) {
            if (result < 0) {
                is(file.error, expected);
                assert_nothing_in_it();
            }
            is(result, result < 0 ? IDEM_E_STORAGE : expected);
            if (!expected) {
                is(synced, 3);                  // zeros; name; ours
                is(dropped, 0);
            }
            use_again();
            at++;
        }
        is(result, 0);
        close_file();
        assert_true(at > 0);
    }
}

/* A look at the name, which need not be there; and at what was opened.  Not
   every folder can be synced. */
TEST(not_every_call_must_be_possible)
{
    is(use_failing(0, STAT, 0, FAIL, EIO), 1);
    is(result, 0);
    close_file();
    for (unsigned at = 1; at <= 4; at++) {      // after the lock; at a sync
        is(use_failing(0, STAT, at, FAIL, EIO), 1);
        is(result, at <= 2 ? IDEM_E_STORAGE : EIO);
        is(file.error, EIO);
        use_again();
    }
    is(use_failing(0, STAT, 5, FAIL, EIO), 0);
    close_file();
    is(use_failing(0, STAT, 4, FAIL, ENOTDIR), 1);      // a folder is gone
    is(result, ESTALE);
    use_again();
    is(use_failing(0, LINK, 0, FAIL, EIO), 1);
    is(result, IDEM_E_STORAGE);
    is(file.error, EIO);
    is(use_failing(0, LINK, 1, FAIL, EIO), 0);
    close_file();
    is(use_failing(SIZE, SYNC, 1, FAIL, EINVAL), 1);
    is(result, 0);
    close_file();
}

/* One that asks for less need not be possible either. */
TEST(where_statx_is_forbidden_stat_is_asked)
{
    static const int errors[] = { EPERM, ENOSYS };

    for (size_t i = 0; i < COUNT(errors); i++) {
        forbidden = errors[i];
        is(open_file(&file), IDEM_OK);
        is(prog_byte(&file, 0x5A), 0);
        is(file.storage.sync(file.storage.ctx), 0);
        close_file();
    }
    forbidden = 0;
}

TEST(a_close_that_fails_is_reported_and_closes)
{
    is(open_file(&file), IDEM_OK);
    expect_fault(CLOSE, 0, FAIL, EIO);
    is(idem_file_close(&file), IDEM_E_STORAGE);
    is(file.error, EIO);
    assert_true(struck());
    is(open_file(&other), IDEM_OK);
}

TEST(a_full_disk_leaves_nothing_in_the_way)
{
    for (unsigned at = 0; at < 3; at++) {
        expect_fault(WRITE, at, FAIL, ENOSPC);
        is(idem_file_open(&file, path, 4096, SECTORS), IDEM_E_STORAGE);
        is(file.error, ENOSPC);
        assert_true(struck());
        assert_nothing_in_it();
    }
    opens_as(0);
}

TEST(a_transfer_that_failed_may_be_repeated)
{
    char byte = 0;

    is(open_file(&file), IDEM_OK);
    expect_fault(WRITE, 0, FAIL, ENOSPC);
    is(prog_byte(&file, 'a'), ENOSPC);
    is(prog_byte(&file, 'a'), 0);
    expect_fault(READ, 0, FAIL, EIO);
    is(file.storage.read(&file, 0, &byte, 1), EIO);
    is(file.storage.read(&file, 0, &byte, 1), 0);
    is(byte, 'a');
    is(file.error, 0);
    is(file.storage.sync(&file), 0);
}

TEST(after_a_failed_sync_nothing_is_written_until_reopened)
{
    static const int errors[] = { EIO, ENOSPC, EDQUOT };
    char byte = 0;

    for (size_t i = 0; i < COUNT(errors); i++) {
        is(open_file(&file), IDEM_OK);
        is(prog_byte(&file, 'a'), 0);
        expect_fault(SYNC, 0, FAIL, errors[i]);
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

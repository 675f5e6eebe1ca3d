/* SPDX-License-Identifier: 0BSD */
/* examples/sender.c at one end of the demo's bad line, the demo's device at the
   other, both killed (kill -9) all the time.  The device must have executed
   each line of the file once, whichever was killed at which moment.
       sender_test [SEED [KILLS]]      goes on until the sender was killed KILLS
                                       times, file by file (60) */
#include "examples/serial/run.c"
#include "examples/serial/audit.c"

enum { LINES = 40, LATEST_CALL = 16 };

#define STRACE "/usr/bin/strace"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The device's effects, as the file asks for them */
static struct {
    uint32_t pours, ml, labels;
    uint32_t ml_of[LINES + 1];      /* by line, 0: a label */
} asked;

static struct {
    uint32_t seed;
    char     bin[PATH_SIZE / 2];
    char     outbox[PATH_SIZE + 16], secret[PATH_SIZE + 24];
    char     commands[PATH_SIZE + 16];
    uint32_t kills, early;          /* of the sender */
    uint32_t frames;                /* it had sent when it was started */
} test;

static void not_so(const char *what, uint32_t is, uint32_t should_be)
{
    fprintf(stderr, "sender: %s: %u, not %u; seed %u\n", what, (unsigned)is,
            (unsigned)should_be, (unsigned)options.seed);
    exit(1);
}

static void same(const char *what, uint32_t is, uint32_t should_be)
{
    if (is != should_be)
        not_so(what, is, should_be);
}

static void write_commands(void)
{
    FILE *file = fopen(test.commands, "w");
    uint32_t n;

    if (!file)
        host_die(test.commands);
    memset(&asked, 0, sizeof asked);
    for (n = 1; n <= LINES; n++) {
        if (host_random(&test.seed, 3) > 0) {
            asked.ml_of[n] = 1 + host_random(&test.seed, 500);
            asked.pours++;
            asked.ml += asked.ml_of[n];
            fprintf(file, "pour %u\n", (unsigned)asked.ml_of[n]);
        } else {
            asked.labels++;
            fprintf(file, "label table %u\n", (unsigned)n);
        }
    }
    if (fclose(file) != 0)
        host_die(test.commands);
}

/* ---------------------------------------------------------------------------
   the sender
   ------------------------------------------------------------------------ */

/* Words that make strace start the sender, and kill it instead of its n-th
   write to outbox, disk or line, whichever is drawn. */
static void draw_call(char *traced, char *fault, size_t size)
{
    static const char *const calls[] = { "pwrite64", "fdatasync", "write" };
    const char *call = calls[host_random(&test.seed, COUNT(calls))];

    snprintf(traced, size, "trace=%s", call);
    snprintf(fault, size, "inject=%s:signal=SIGKILL:when=%u", call,
             (unsigned)(1 + host_random(&test.seed, LATEST_CALL)));
}

/* Under strace, which kills it: between two calls of the system it does nothing
   that outlasts it. */
static void start_sender(run *r)
{
    char program[PATH_SIZE + 16], traced[64], fault[64];
    const char *arguments[] = {
        STRACE, "-I", "2", "-qq", "-o", "/dev/null", "-e", traced, "-e", fault,
        program, r->to_controller.name, test.outbox, test.commands, NULL
    };
    int ignored = open("/dev/null", O_WRONLY | O_CLOEXEC);

    snprintf(program, sizeof program, "%s/sender", test.bin);
    draw_call(traced, fault, sizeof fault);
    r->controller = start(arguments, ignored);
    close(ignored);
    test.frames = r->down.frames;
}

static void look_after_sender(run *r)
{
    if (waitpid(r->controller, &r->status, WNOHANG) != r->controller)
        return;
    r->over = !WIFSIGNALED(r->status) || WTERMSIG(r->status) != SIGKILL;
    if (r->over)
        return;
    test.kills++;
    test.early += r->down.frames == test.frames;
    start_sender(r);
}

/* ---------------------------------------------------------------------------
   what the device did
   ------------------------------------------------------------------------ */

/* Lines of the file, each once; the printer's own line ends with VOID. */
static void check_labels(const run *r)
{
    char text[LINE_SIZE];
    unsigned epoch = 0, first = 0, sequence, table;
    uint32_t seen[LINES + 1] = { 0 }, labels = 0, n;
    FILE *file = open_file(r->dir, "labels");

    while (next_line(file, text)) {
        if (is_void(text))
            continue;
        labels++;
        same("parts of a label", (uint32_t)sscanf(
                 text, "panel #%u.%u table %u", &epoch, &sequence, &table), 3);
        same("a label's number", sequence, table);
        same("its epoch", epoch, first ? first : epoch);
        first = epoch;
        if (table == 0 || table > LINES || asked.ml_of[table])
            not_so("a label of line", table, 0);
        seen[table]++;
    }
    if (file)
        fclose(file);
    for (n = 1; n <= LINES; n++)
        same("labels of a line", seen[n], !asked.ml_of[n]);
    same("labels", labels, asked.labels);
}

/* The meter counts the pours, and each was another one's. */
static void check_pours(device *d)
{
    uint8_t meter[DEVICE_STATE_MAX] = { 0 }, response[DEVICE_RESPONSE_MAX];
    uint8_t seen[LINES + 1] = { 0 };
    uint32_t ordinal, finished = 0;
    size_t len = sizeof meter;
    idem_info info;

    (void)idem_state(&d->table, meter, &len);
    same("pours", protocol_get32(meter), asked.pours);
    same("ml", protocol_get32(meter + 4), asked.ml);
    memset(&info, 0, sizeof info);
    while (idem_next(&d->table, &info, 0) == IDEM_OK) {
        same("status", (uint32_t)info.status, IDEM_COMPLETED);
        finished++;
        len = sizeof response;
        same("response", (uint32_t)idem_response(&d->table, response, &len,
                                                 &info.claim, 0), IDEM_OK);
        if (len != DEVICE_RESPONSE_MAX)
            continue;
        ordinal = protocol_get32(response);
        if (ordinal == 0 || ordinal > asked.pours || seen[ordinal]++)
            not_so("a pour's ordinal", ordinal, 0);
    }
    same("outcomes", finished, LINES);
}

/* ---------------------------------------------------------------------------
   a file of commands
   ------------------------------------------------------------------------ */

static void one_file(run *r)
{
    uint32_t until;

    prepare(r, 0);
    remove_old(r->dir);
    r->progress = -1;                           // the sender prints none
    write_commands();
    unlink(test.outbox);
    unlink(test.secret);
    start_device(r);
    start_sender(r);
    while (!r->over) {
        r->shown_ms = host_millis();            // no bar
        step(r);
        look_after_sender(r);
    }
    // What is under way on the line may still arrive.
    for (until = host_millis() + 2 * LINE_LATE_MS;
         (int32_t)(until - host_millis()) > 0;) {
        r->shown_ms = host_millis();
        step(r);
    }
    kill_device(r);
    close_end(&r->to_controller);
    close_end(&r->to_device);
    if (!WIFEXITED(r->status))
        not_so("ended by a signal", (uint32_t)r->status, 0);
    same("exit status", (uint32_t)WEXITSTATUS(r->status), 0);
    check_labels(r);
    if (read_flash(r->dir, check_pours) < 0)
        exit(1);
}

int main(int argc, char **argv)
{
    static const line_rates bad = { 15, 10, 15, 5 };
    static char program[PATH_SIZE + 16];
    static run r;
    const char *slash = strrchr(argv[0], '/');
    uint32_t kills = argc > 2 ? host_number(argv[2], 100000) : 60;
    uint32_t files, device_kills = 0;

    if (access(STRACE, X_OK) < 0)
        host_die(STRACE);
    options.seed = argc > 1 ? host_number(argv[1], 1000000) : 1;
    options.count = LINES;
    options.kill_ms = 120;
    options.early_ms = 6;
    options.rates = bad;
    snprintf(test.bin, sizeof test.bin, "%.*s", slash ? (int)(slash - argv[0])
             : 1, slash ? argv[0] : ".");
    snprintf(program, sizeof program, "%s/serial/device", test.bin);
    options.device = program;
    snprintf(options.bin, sizeof options.bin, "%s/sending", test.bin);
    if (mkdir(options.bin, 0700) < 0 && errno != EEXIST)
        host_die(options.bin);
    snprintf(test.outbox, sizeof test.outbox, "%s/outbox", options.bin);
    snprintf(test.secret, sizeof test.secret, "%s.secret", test.outbox);
    snprintf(test.commands, sizeof test.commands, "%s/commands", options.bin);
    for (files = 0; test.kills < kills; files++, options.seed++) {
        test.seed = options.seed;
        one_file(&r);
        device_kills += r.kills;
    }
    printf("sender: %u commands, each executed once; the sender was killed %u "
           "times,\n%u of them before it had sent anything; the device %u\n",
           (unsigned)(files * LINES), (unsigned)test.kills,
           (unsigned)test.early, (unsigned)device_kills);
    return 0;
}

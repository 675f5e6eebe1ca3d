/* SPDX-License-Identifier: 0BSD */
#define _POSIX_C_SOURCE 200809L
#include "dynamodb_item.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POLL_MS = 100 };

char *dynamodb_to_hex(char *dst, const void *data, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)data;

    dst[0] = 0;
    for (size_t i = 0; i < len; i++)
        sprintf(dst + 2 * i, "%02x", bytes[i]);
    return dst;
}

static size_t from_hex(unsigned char *dst, size_t size, const char *hex)
{
    size_t len = strlen(hex) / 2;
    unsigned byte;

    for (size_t i = 0; i < len && i < size; i++)
        dst[i] = (unsigned char)(sscanf(hex + 2 * i, "%2x", &byte) ? byte : 0);
    return len;
}

/* The text of an item's dynamodb_attribute, "" if there is none. */
const char *dynamodb_attribute(const cJSON *item, const char *name)
{
    const cJSON *value = cJSON_GetObjectItem(item, name);

    return value && value->child && value->child->valuestring
               ? value->child->valuestring : "";
}

static int64_t number(const cJSON *item, const char *name)
{
    return strtoll(dynamodb_attribute(item, name), NULL, 10);
}

/* Takes an item, or that there is none; *id is what it goes by. */
static int read_record(fleet *f, fleet_record *r, const cJSON *item,
                       dynamodb_id id)
{
    const char *text = dynamodb_attribute(item, "bo");
    const char *response = *text ? text + 1 : text;
    size_t len = strlen(response) / 2;
    unsigned char *bytes = (unsigned char *)malloc(len + 1);

    r->now = dynamodb_now(f);
    r->state = (int)number(item, "st");
    r->token = strtoull(dynamodb_attribute(item, "tk"), NULL, 10);
    r->attempts = (uint32_t)number(item, "nr");
    r->fingerprint = strtoull(dynamodb_attribute(item, "fp"), NULL, 10);
    r->until = number(item, "un");
    r->retention = number(item, "re");
    r->reserved = (size_t)number(item, "rs");
    r->code = (int32_t)number(item, "co");
    r->owed = *dynamodb_attribute(item, "ow") != 0;
    snprintf(id, sizeof(dynamodb_id), "%s", dynamodb_attribute(item, "id"));
    r->id_len = from_hex(r->id, sizeof r->id, id);
    if (!bytes)
        return fleet_fail(f, IDEM_E_STORAGE, "no memory for a response");
    from_hex(bytes, len, response);
    fleet_keep_response(r, bytes, len);
    free(bytes);
    return IDEM_OK;
}

int dynamodb_find(fleet *f, fleet_record *r, const fleet_wish *w)
{
    dynamodb_id id, found;
    cJSON *answer = NULL;
    int result = dynamodb_call(f, &answer, "GetItem",
                               "{" TABLE ",\"ConsistentRead\":true," KEY "}",
                               f->name, w->slot,
                               dynamodb_to_hex(id, w->id, w->id_len));

    if (result == IDEM_OK)
        result = read_record(f, r, cJSON_GetObjectItem(answer, "Item"), found);
    cJSON_Delete(answer);
    return result;
}

/* The first item of a query, if there is one: else there is no such outcome. */
int dynamodb_first(fleet *f, fleet_record *r, cJSON *answer, dynamodb_id id)
{
    const cJSON *item =
        cJSON_GetArrayItem(cJSON_GetObjectItem(answer, "Items"), 0);

    return item ? read_record(f, r, item, id)
                : fleet_fail(f, IDEM_E_NOT_FOUND, "no such outcome");
}

/* The item that a claim names.  A slot has one, or by chance two. */
int dynamodb_find_claim(fleet *f, fleet_record *r, const idem_claim *c,
                        dynamodb_id id)
{
    cJSON *answer = NULL;
    int result = dynamodb_call(f, &answer, "Query", "{" TABLE
        ",\"ConsistentRead\":true,\"KeyConditionExpression\":\"slot = :s\","
        "\"FilterExpression\":\"tk = :t\",\"ExpressionAttributeValues\":{"
        N(":s") "," U(":t") "}}", f->name, (int64_t)c->slot, c->token);

    if (result == IDEM_OK)
        result = dynamodb_first(f, r, answer, id);
    cJSON_Delete(answer);
    return result == IDEM_OK && fleet_is_over(r)
               ? fleet_fail(f, IDEM_E_NOT_FOUND, "no such outcome") : result;
}

/* The same for a claim that is to be current. */
int dynamodb_find_held(fleet *f, fleet_record *r, const idem_claim *c,
                       dynamodb_id id)
{
    int result = dynamodb_find_claim(f, r, c, id);

    return result == IDEM_E_NOT_FOUND ||
                   (result == IDEM_OK && r->state != IDEM_IN_PROGRESS)
               ? fleet_fail(f, IDEM_E_FENCED, "the claim is not current")
               : result;
}

/* ---------------------------------------------------------------- the table */

static int make_table(fleet *f)
{
    return dynamodb_call(f, NULL, "CreateTable", "{" TABLE
        ",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":["
        "{\"AttributeName\":\"slot\",\"AttributeType\":\"N\"},"
        "{\"AttributeName\":\"id\",\"AttributeType\":\"S\"},"
        "{\"AttributeName\":\"ow\",\"AttributeType\":\"S\"},"
        "{\"AttributeName\":\"pl\",\"AttributeType\":\"S\"}],\"KeySchema\":["
        "{\"AttributeName\":\"slot\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"id\",\"KeyType\":\"RANGE\"}],"
        "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"owed\",\"KeySchema\":["
        "{\"AttributeName\":\"ow\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"pl\",\"KeyType\":\"RANGE\"}],"
        "\"Projection\":{\"ProjectionType\":\"ALL\"}}]}", f->name);
}

/* Waits until a table that is being made, by whomever, can be used. */
static int await_table(fleet *f)
{
    static const struct timespec a_while = { 0, POLL_MS * 1000000L };

    for (int i = 0; i < 10 * FLEET_TIMEOUT_MS / POLL_MS; i++) {
        cJSON *answer = NULL, *table;
        int result = dynamodb_call(f, &answer, "DescribeTable", "{" TABLE "}",
                                   f->name), active;
        table = cJSON_GetObjectItem(answer, "Table");
        active = !strcmp(dynamodb_text(table, "TableStatus"), "ACTIVE");
        cJSON_Delete(answer);
        if (result != IDEM_OK || active)
            return result;
        nanosleep(&a_while, NULL);
    }
    return fleet_fail(f, IDEM_E_STORAGE, "the table %s in DynamoDB is not "
                      "active", f->name);
}

/* Writes the mark, unless there is one. */
static int write_mark(fleet *f)
{
    int64_t now = dynamodb_now(f);
    int result;

    fleet_make_mark(f, now);
    result = dynamodb_call(f, NULL, "PutItem", "{" TABLE ",\"Item\":{"
        "\"slot\":{\"N\":\"-1\"}," S("id") "," S("mk") "," N("tk") "},"
        "\"ConditionExpression\":\"attribute_not_exists(mk)\"}", f->name,
        "fleet", f->mark, now * 1000);
    return result == IDEM_BUSY ? IDEM_OK : result;
}

/* Reads the mark.  IDEM_E_NOT_FOUND: there is none. */
static int read_mark(fleet *f)
{
    cJSON *answer = NULL;
    const char *mark;
    int result = dynamodb_call(f, &answer, "GetItem", "{" TABLE ",\"Consistent"
                               "Read\":true," MARK_KEY "}", f->name);

    if (result == IDEM_OK) {
        mark = dynamodb_attribute(cJSON_GetObjectItem(answer, "Item"), "mk");
        if (!*mark)
            result = IDEM_E_NOT_FOUND;
        else if (!fleet_take_mark(f, mark))
            result = fleet_fail(f, IDEM_E_FORMAT, "the table %s in DynamoDB is "
                                "not this fleet's: \"%s\"", f->name, mark);
    }
    cJSON_Delete(answer);
    return result;
}

int dynamodb_open(fleet *f)
{
    int result = dynamodb_connect(f);

    if (result == IDEM_OK)
        result = dynamodb_call(f, NULL, "DescribeTable", "{" TABLE "}",
                               f->name);
    if (result == IDEM_E_FORMAT)
        result = make_table(f);
    if (result == IDEM_OK || result == IDEM_BUSY)   // busy: others make it
        result = await_table(f);
    if (result == IDEM_OK)
        result = read_mark(f);
    if (result == IDEM_E_NOT_FOUND)
        result = write_mark(f);
    return result == IDEM_OK ? read_mark(f) : result;
}

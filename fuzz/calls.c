/* SPDX-License-Identifier: 0BSD */
#include "../tests/model/calls.h"
#include "harness.h"

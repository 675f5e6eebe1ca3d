/* SPDX-License-Identifier: 0BSD */
#include "../tests/model/arriving.h"
#include "harness.h"

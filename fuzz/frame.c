/* SPDX-License-Identifier: 0BSD */
#include "../tests/model/frame.h"
#include "harness.h"

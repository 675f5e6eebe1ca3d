/* SPDX-License-Identifier: 0BSD */
#include "../tests/model/image.h"
#include "harness.h"

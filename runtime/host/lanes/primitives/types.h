#pragma once
#include "common/types.h"

#define MPK_FAST 0

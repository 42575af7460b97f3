#pragma once
#include "common/math.h"

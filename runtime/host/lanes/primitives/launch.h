#pragma once
#include "common/launch.h"

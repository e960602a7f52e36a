// What the report's script draws, as JSON (see report/report.js). Private to api/.
#pragma once

#include <string>

#include "ymir/api/report_html.h"

namespace ymir {

// One JSON object; times are seconds since the first event.
std::string report_data(const ReportInput& input);

}  // namespace ymir

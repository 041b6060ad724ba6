// Mail about a job that has ended, by the system's sendmail(8), whichever mail system that is of.
#pragma once

#include <string>

#include "base/result.h"
#include "pool/job.h"

namespace remuda::run {

/// The program: `sendmail` in PATH, or where systems have it. A usage error where there is none.
Result<std::string> mail_program();

/// A usage error where mail cannot be sent from here, or that is no address: a name of this machine, or one with @.
Result<void> check_mail(const std::string& address);

/// The message about a job that has ended, header and all, for `sendmail -i ADDRESS`. Pure except for the time zone.
std::string end_mail(const pool::Job& job, const std::string& host);

std::string host_name();

}  // namespace remuda::run

#include "run/mail.h"

#include <filesystem>
#include <gmock/gmock.h>

#include "base/env.h"
#include "base/testing/scratch_folder.h"

namespace remuda::run {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// With a `sendmail` in PATH.
class MailTest : public testing::Test {
 protected:
  MailTest() {
    folder_.write("sendmail", "#!/bin/sh\n");
    std::filesystem::permissions(folder_.path("sendmail"), std::filesystem::perms(0755));
    ::setenv("PATH", (folder_.path() + ":relative:" + path_).c_str(), 1);
  }
  ~MailTest() override { ::setenv("PATH", path_.c_str(), 1); }

  const std::string path_ = env::get(env::path).value_or("");
  ScratchFolder folder_;
};

pool::Job ended() {
  pool::Job job;
  job.id = 12;
  job.name = "sweep";
  job.state = pool::JobState::ended;
  job.signal = 9;
  job.why = "killed by signal 9 (Killed)";
  job.submitted_s = 1000;
  job.started_s = 1100;
  job.ended_s = 1220;
  job.command = {"python", "train.py"};
  job.mail = "ada@example.org";
  return job;
}

TEST_F(MailTest, IsForAnAddressAndNothingElse) {
  for (const char* good : {"ada@example.org", "a.b+c_d-e%f=g@x", "root"}) EXPECT_TRUE(check_mail(good)) << good;
  for (const char* bad :
       {"", "-t", "-oQ/tmp", "a b", "a@b@c", "@b", "a@", "a\nBcc: eve", "a;b", "|sh", "<a@b>", "\u00e4@b"})
    EXPECT_FALSE(check_mail(bad)) << bad;
  EXPECT_FALSE(check_mail(std::string(255, 'a')));
  EXPECT_EQ(check_mail("python3").error().message,
            "--mail: python3 is no user of this machine; write an address such as ada@example.org");
  EXPECT_EQ(check_mail("a b").error().message,
            "--mail: 'a b' is no address; write one such as ada@example.org, or a user of this machine");
}

TEST_F(MailTest, IsSentByTheFirstSendmailInThePath) {
  EXPECT_EQ(mail_program().value_or(""), folder_.path("sendmail"));
}

TEST_F(MailTest, IsRefusedWhereThereIsNone) {
  std::filesystem::remove(folder_.path("sendmail"));
  ::setenv("PATH", folder_.path().c_str(), 1);
  const auto program = mail_program();
  if (program) GTEST_SKIP() << "this machine has " << *program;
  EXPECT_THAT(check_mail("ada@example.org").error().message, HasSubstr("--mail: this machine has no sendmail"));
  EXPECT_EQ(check_mail("ada@example.org").error().kind, ErrorKind::usage);
}

TEST(EndMail, SaysHowTheJobEnded) {
  const std::string text = end_mail(ended(), "box");
  EXPECT_THAT(text, StartsWith("To: ada@example.org\nSubject: remuda: job 12 (sweep) failed\nAuto-Submitted: "));
  EXPECT_THAT(text, AllOf(HasSubstr("\n\njob         12 on box\n"), HasSubstr("exit        137\n"),
                          HasSubstr("ran for     2 min\n"), HasSubstr("command     python train.py\n")));
}

TEST(EndMail, HasNoHeaderOfTheJobsMaking) {
  pool::Job job = ended();
  job.name = "x)\nBcc: eve@example.org\n";
  EXPECT_THAT(end_mail(job, "box"), Not(HasSubstr("\nBcc")));
  job.name = "schn\u00f6rkel";
  EXPECT_THAT(end_mail(job, "box"),
              AllOf(HasSubstr("Subject: remuda: job 12 failed\n"), HasSubstr("name        schn\u00f6rkel\n")));
}

}  // namespace
}  // namespace remuda::run

#include "web/testing/certificate.h"

#include <cstdio>
#include <memory>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "base/check.h"

namespace remuda::web {

void write_certificate(const std::string& folder) {
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(::EVP_EC_gen("P-256"), &::EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(::X509_new(), &::X509_free);
  X509* one = certificate.get();
  ::ASN1_INTEGER_set(::X509_get_serialNumber(one), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(one), -60);
  ::X509_gmtime_adj(::X509_getm_notAfter(one), 3600);
  ::X509_set_pubkey(one, key.get());
  X509_NAME* name = ::X509_get_subject_name(one);
  ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("127.0.0.1"), -1, -1,
                               0);
  ::X509_set_issuer_name(one, name);
  REMUDA_CHECK(::X509_sign(one, key.get(), ::EVP_sha256()) > 0, "OpenSSL signs what it was given");
  const auto write = [&](const char* file, auto put) {
    const std::unique_ptr<FILE, decltype(&std::fclose)> out(std::fopen((folder + file).c_str(), "w"), &std::fclose);
    REMUDA_CHECK(out && put(out.get()) == 1, "a test can write its files");
  };
  write("/cert.pem", [&](FILE* out) { return ::PEM_write_X509(out, one); });
  write("/key.pem",
        [&](FILE* out) { return ::PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  REMUDA_CHECK(::chmod((folder + "/key.pem").c_str(), 0600) == 0, "a test can write its files");
}

}  // namespace remuda::web

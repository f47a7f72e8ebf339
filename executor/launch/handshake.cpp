#include "executor/launch/handshake.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <type_traits>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  return std::as_bytes(std::span(&value, 1));
}

/// `purpose` keeps the proof of one side from being taken for that of the other.
Proof proof_of(const std::string& secret, char purpose, std::span<const std::byte> first,
               std::span<const std::byte> second) {
  std::vector<std::byte> message{static_cast<std::byte>(purpose)};
  message.insert(message.end(), first.begin(), first.end());
  message.insert(message.end(), second.begin(), second.end());
  Proof proof{};
  unsigned size = 0;
  const auto* text = reinterpret_cast<const unsigned char*>(message.data());  // NOLINT: bytes
  auto* to = reinterpret_cast<unsigned char*>(proof.data());                  // NOLINT: bytes
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text, message.size(), to,
           &size) == nullptr ||
      size != proof.size())
    throw RuntimeFailure({"--ranks job", "OpenSSL cannot compute HMAC-SHA256", ""});
  return proof;
}

bool equal(const Proof& a, const Proof& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Proof proof_of(Hello hello, const std::string& secret, const Challenge& challenge) {
  hello.proof = {};
  return proof_of(secret, 'h', bytes_of(challenge), bytes_of(hello));
}

Proof proof_of(Verdict verdict, const std::string& secret, const Hello& hello) {
  return proof_of(secret, 'w', bytes_of(verdict), bytes_of(hello));
}

}  // namespace

Challenge new_challenge() {
  Challenge challenge{};
  auto* to = reinterpret_cast<unsigned char*>(challenge.data());  // NOLINT: bytes
  if (RAND_bytes(to, static_cast<int>(challenge.size())) != 1)
    throw RuntimeFailure({"--ranks job", "the system has no random numbers", ""});
  return challenge;
}

std::string new_secret() {
  std::string text;
  for (const std::byte byte : new_challenge())
    text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Hello signed_hello(Hello hello, const std::string& secret, const Challenge& challenge) {
  hello.proof = proof_of(hello, secret, challenge);
  return hello;
}

bool is_signed(const Hello& hello, const std::string& secret, const Challenge& challenge) {
  return equal(hello.proof, proof_of(hello, secret, challenge));
}

Welcome signed_welcome(Verdict verdict, const std::string& secret, const Hello& hello) {
  return {verdict, proof_of(verdict, secret, hello)};
}

bool is_signed(const Welcome& welcome, const std::string& secret, const Hello& hello) {
  return equal(welcome.proof, proof_of(welcome.verdict, secret, hello));
}

}  // namespace meshwright

/// Mutual authentication of the processes of a job when they connect over TCP.
///
/// The process that accepts a connection sends a challenge, the other answers with who it is, a
/// challenge of its own, and a proof (HMAC-SHA256, RFC 2104, of both) that it knows the secret of
/// the job; the first then proves that it knows the secret, too. The secret itself is never sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace meshwright {

using Challenge = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

/// Random bytes of the system. Throws RuntimeFailure if it has none.
Challenge new_challenge();
/// A new secret for the processes of a job: 64 hexadecimal digits.
std::string new_secret();

enum class SocketUse : std::uint32_t { kPeer, kLauncher };

/// Who connects. Plain bytes, in the byte order of the machine.
struct Hello {
  std::uint32_t protocol = 0;  ///< kProtocol
  std::int32_t rank = 0, ranks = 0;
  SocketUse use = SocketUse::kPeer;
  std::uint32_t port = 0;  ///< port that the sender listens on
  Challenge challenge{};
  Proof proof{};
};
inline constexpr std::uint32_t kProtocol = 0x4d57'0002;
Hello signed_hello(Hello hello, const std::string& secret, const Challenge& challenge);
/// Compares in constant time.
bool is_signed(const Hello& hello, const std::string& secret, const Challenge& challenge);

enum class Verdict : std::uint32_t { kAccepted, kOtherSecret, kOtherSize, kTaken };

/// The answer to a Hello.
struct Welcome {
  Verdict verdict = Verdict::kAccepted;
  Proof proof{};
};
Welcome signed_welcome(Verdict verdict, const std::string& secret, const Hello& hello);
bool is_signed(const Welcome& welcome, const std::string& secret, const Hello& hello);

}  // namespace meshwright

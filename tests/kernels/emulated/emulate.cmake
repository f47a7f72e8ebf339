# Rewrites a .cu source to plain C++: cmake -DIN=… -DOUT=… -P emulate.cmake. See gpu.hpp.
file(READ "${IN}" text)
string(REPLACE "<<<" " % ::emulated::Launch(" text "${text}")
string(REPLACE ">>>(" ")(" text "${text}")
string(REGEX REPLACE "extern __shared__ (__align__\\([0-9]+\\) )?([A-Za-z0-9_:]+) ([a-z_]+)\\[\\]"
       "\\2* \\3 = reinterpret_cast<\\2*>(::emulated::dynamic_shared_memory())" text "${text}")
file(WRITE "${OUT}" "${text}")

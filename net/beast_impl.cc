// The one object that holds Beast's own code (BOOST_BEAST_SEPARATE_COMPILATION).

#include <boost/beast/src.hpp>

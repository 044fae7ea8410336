// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// NameSuffix returns n lower-case base32 characters (a-z, 2-7) of the SHA-256 of the parts joined by "/": the tail of a
// computed name. n is at most 52. Equal parts give equal names, so a repeated Create meets AlreadyExists instead of
// making a twin.
func NameSuffix(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:n]
}

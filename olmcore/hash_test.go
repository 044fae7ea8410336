// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
)

func TestNameSuffixIsAFunctionOfItsParts(t *testing.T) {
	require.Equal(t, "johmmfoxkh", olmcore.NameSuffix(10, strings.Repeat("0", 64), "1"))
	require.NotEqual(t, olmcore.NameSuffix(10, "a", "b"), olmcore.NameSuffix(10, "a", "c"))
}

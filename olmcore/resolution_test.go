// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
)

func TestPackagesOfProperties(t *testing.T) {
	for text, want := range map[string][]string{
		``:   nil,
		`{}`: nil,
		`x`:  nil,
		`{"properties":[{"type":"olm.gvk","value":{"packageName":"a"}},{"type":"olm.package","value":{"packageName":"b"}}]}`: {"b"},
		`{"properties":[{"type":"olm.package","value":{}},{"type":"olm.package","value":"c"},{"type":"x","value":1}]}`:       nil,
		`{"properties":[{"type":"x","value":"y"},{"type":"olm.package","value":{"packageName":"b","version":"1.0.0"}}]}`:     {"b"},
	} {
		require.Equal(t, want, olmcore.PackagesOf(text), text)
	}
}

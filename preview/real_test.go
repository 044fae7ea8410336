// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/preview"
)

// TestPublishedOperatorsComeAsForeseen: what is foreseen of the installation of published operators, and of an upgrade to a
// version that differs in its name, is what comes.
func TestPublishedOperatorsComeAsForeseen(t *testing.T) {
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			first := upgradetest.BundleFrom(b.Objects)
			first.CSV.Spec.Replaces, first.CSV.Spec.Skips = "", nil
			w := upgradetest.Offering(t, []bundle{first})
			p := previewed(t, w)
			require.NotEmpty(t, p.Objects)
			requireCameTrue(t, w, p)

			second := first
			second.CSV = first.CSV.DeepCopy()
			second.CSV.Name, second.CSV.Spec.Replaces = first.CSV.Name+"-next", first.CSV.Name
			second.CSV.Spec.Version.Major++
			w.Offer(t, first, second)
			w.Run(t)
			p = previewed(t, w)
			require.Equal(t, []preview.Version{{Namespace: "ops", Name: second.CSV.Name, Version: second.CSV.Spec.Version.String(), Replaces: first.CSV.Name}}, p.Versions)
			requireCameTrue(t, w, p)
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/internal/upgradetest"
)

// TestPublishedOperatorsComeAsForeseen: what is foreseen of the installation of published operators, and of the upgrade
// to their next published version, is what comes.
func TestPublishedOperatorsComeAsForeseen(t *testing.T) {
	series := map[string][]bundle{}
	var names []string
	for _, b := range realdata.Some(t, "cert-manager", "infinispan", "snapscheduler") {
		if series[b.Operator] == nil {
			names = append(names, b.Operator)
		}
		next := upgradetest.BundleFrom(b.Objects)
		next.CSV.Spec.Replaces, next.CSV.Spec.Skips = "", nil
		if before := series[b.Operator]; len(before) > 0 {
			next.CSV.Spec.Replaces = before[len(before)-1].CSV.Name
		}
		series[b.Operator] = append(series[b.Operator], next)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			all := series[name]
			w := upgradetest.Offering(t, all[:1])
			for i := range all {
				w.Offer(t, all[:i+1]...)
				w.Run(t)
				p := previewed(t, w)
				requireCameTrue(t, w, p)
				if len(p.Objects) == 0 { // it needs an API that is not there
					require.NotEmpty(t, p.Blocked)
					return
				}
			}
		})
	}
}

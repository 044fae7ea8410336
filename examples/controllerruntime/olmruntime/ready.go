// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/olmcore/olm/olmcore/decode"
)

// Ready is a healthz.Checker for the manager's AddReadyzCheck: nil once the caches have been filled with every kind
// that the controllers watch, else an error that names the kinds that they lack. Caches are filled before an election:
// a manager that waits for it is ready, as it can take over at once. It stays ready when the API server is away later.
func (m *Manager) Ready(r *http.Request) error {
	var lacking []string
	for gvk, c := range m.caches {
		informer, err := c.GetInformer(r.Context(), decode.Blank(gvk), cache.BlockUntilSynced(false))
		if err != nil || !informer.HasSynced() {
			lacking = append(lacking, gvk.Kind)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	slices.Sort(lacking)
	return fmt.Errorf("the caches lack %s", strings.Join(lacking, ", "))
}

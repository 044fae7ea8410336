// SPDX-License-Identifier: Apache-2.0

package olmruntime

import "sigs.k8s.io/controller-runtime/pkg/cache"

// Caches are those that a manager reads from, each once.
func (m *Manager) Caches() map[cache.Cache]bool {
	all := map[cache.Cache]bool{m.GetCache(): true}
	for _, c := range m.caches {
		all[c] = true
	}
	return all
}

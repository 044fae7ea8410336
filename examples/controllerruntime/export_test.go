// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// What tests look at beside the API.
var (
	AddIndexes   = addIndexes
	WatchedKinds = watchedKinds
	Remember     = remember
	Tell         = tell
)

const MaxNote = maxNote

type (
	Memory     = memory
	Remembered = remembered
)

func (o Options) CachedNamespaces() []string { return o.cached() }

func (m *memory) Get(key types.NamespacedName) Remembered { return m.get(key) }

func (m *memory) Set(key types.NamespacedName, r Remembered) { m.set(key, r) }

func (m *memory) Len() int { return len(m.keys) }

func (m remembered) Outcomes() olmcore.Outcomes { return m.outcomes }

func (m remembered) Behind(ctx context.Context, r olmcore.Reader, now time.Time) bool {
	return m.behind(ctx, r, now)
}

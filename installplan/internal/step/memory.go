// SPDX-License-Identifier: Apache-2.0

package step

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/manifest"
)

// maxRemembered bounds the files of the bundles that a Memory knows, in bytes: who writes a plan decides how large they
// are.
const maxRemembered = 8 << 20

// Memory is what a call made of the unpacked bundles that a plan refers to: handed to the next call for the plan it
// spares that these are inflated and decoded again, for each step that is applied. It knows a ConfigMap by its UID and
// resourceVersion, and what a call does not ask for is forgotten. Nil knows and remembers nothing, and is always right.
type Memory struct {
	earlier, now map[identity]*unpacked
	size         int // of what is known now
}

// identity is one version of a ConfigMap.
type identity struct {
	uid             types.UID
	resourceVersion string
}

// unpacked is what is known of a bundle: the bytes of its files, and the steps for references to it.
type unpacked struct {
	size     int
	literals map[manifest.Ref]literal
}

// Next returns the Memory of a call that knows what the one before found.
func (m *Memory) Next() *Memory {
	next := &Memory{now: map[identity]*unpacked{}}
	if m != nil {
		next.earlier = m.now
	}
	return next
}

// Used returns the Memory, nil when there is nothing in it.
func (m *Memory) Used() *Memory {
	if m == nil || len(m.now) == 0 {
		return nil
	}
	return m
}

func identityOf(cm *corev1.ConfigMap) identity {
	return identity{cm.UID, cm.ResourceVersion}
}

// recall returns what is known of a ConfigMap, nil for nothing.
func (m *Memory) recall(cm *corev1.ConfigMap) *unpacked {
	if m == nil {
		return nil
	}
	return m.earlier[identityOf(cm)]
}

// keep remembers the steps for a reference to a bundle.
func (m *Memory) keep(cm *corev1.ConfigMap, size int, ref manifest.Ref, l literal) {
	id := identityOf(cm)
	if m == nil || id.uid == "" || id.resourceVersion == "" {
		return
	}
	u := m.now[id]
	if u == nil {
		if m.size+size > maxRemembered {
			return
		}
		u = &unpacked{size: size, literals: map[manifest.Ref]literal{}}
		m.now[id], m.size = u, m.size+size
	}
	u.literals[ref] = l
}

// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
)

// Reasons for a broken image with an effect of their own. With any other reason the image cannot be pulled.
const (
	// CrashLoopBackOff means that the image is pulled and its container exits at once.
	CrashLoopBackOff = "CrashLoopBackOff"
	// NeverReady means that the container runs and never passes its readiness probe.
	NeverReady = "NeverReady"
)

// Images is the registry and the container runtimes: what happens to containers of an image.
type Images struct {
	store   *store.Store
	queue   *workqueue.Queue
	digests map[string]string // sha256:... by the name of the image
	broken  map[string]string // the reason by the name of the image
}

// NewImages returns images that all work, with digests computed from their names.
func NewImages(s *store.Store, q *workqueue.Queue) *Images {
	return &Images{store: s, queue: q, digests: map[string]string{}, broken: map[string]string{}}
}

// SetDigest sets the digest that an image name resolves to.
func (i *Images) SetDigest(name, digest string) { i.digests[name] = digest }

// Break makes new containers of an image wait for a reason. An empty reason means that the image works.
func (i *Images) Break(name, reason string) {
	i.broken[name] = reason
	i.queue.AddAll(workqueue.Pods, i.store.Table(store.PodKind).List(""))
	i.queue.AddAll(workqueue.Deployments, i.store.Table(store.DeploymentKind).List(""))
}

// Broken returns the reason for which containers of an image wait, or the empty string if the image works.
func (i *Images) Broken(name string) string { return i.broken[name] }

// ID returns the imageID of a container status for an image.
func (i *Images) ID(name string) string {
	if strings.Contains(name, "@") {
		return name
	}
	repository := name
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		repository = name[:i]
	}
	digest := i.digests[name]
	if digest == "" {
		sum := sha256.Sum256([]byte(name))
		digest = "sha256:" + hex.EncodeToString(sum[:])
	}
	return repository + "@" + digest
}

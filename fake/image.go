// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"

	"github.com/olmcore/olm/fake/internal/kubelet"
)

// Reasons for Image.Break with an effect of their own. Any other reason, such as ImagePullBackOff, means that the image
// cannot be pulled.
const (
	// CrashLoopBackOff means that the image is pulled and its container exits at once.
	CrashLoopBackOff = kubelet.CrashLoopBackOff
	// NeverReady means that the container runs and never passes its readiness probe.
	NeverReady = kubelet.NeverReady
)

// Image is a container image, by the name that Pods use, as the simulated registry and container runtime know it.
type Image struct {
	cluster *Cluster
	name    string
}

// Image returns the image of a name.
func (c *Cluster) Image(name string) Image { return Image{c, name} }

// SetDigest sets the digest ("sha256:...") that the name resolves to from now on. Running containers keep the image
// that they started with. Until SetDigest is called, the digest is computed from the name.
func (i Image) SetDigest(digest string) { i.cluster.images.SetDigest(i.name, digest) }

// Break makes new containers of the image wait for a reason. An empty reason means ImagePullBackOff. Running containers
// continue.
func (i Image) Break(reason string) {
	i.cluster.images.Break(i.name, cmp.Or(reason, "ImagePullBackOff"))
}

// Heal undoes Break.
func (i Image) Heal() { i.cluster.images.Break(i.name, "") }

// ID returns the imageID of a container status for the image.
func (i Image) ID() string { return i.cluster.images.ID(i.name) }

// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// Golden opens the shape of a Pod to the golden tests, whose vectors do not all
// come from a CatalogSource.
type Golden struct {
	shape               podShape
	Restricted          bool
	UserID              int64
	OPMImage, UtilImage string
	PullSecrets         []string
	Config              *v1alpha1.GrpcPodConfig
}

// GoldenShape returns a shape with OLM's own resources.
func GoldenShape(container, image, serviceAccount string, readinessDelay, livenessDelay int32) Golden {
	return Golden{shape: podShape{
		container: container, image: image, serviceAccount: serviceAccount, readinessDelay: readinessDelay, livenessDelay: livenessDelay,
		resources: (&settings{}).effectiveResources(),
	}}
}

// Hash returns the hash of the Pod's spec.
func (g Golden) Hash(profile Profile) string {
	g.shape.restricted, g.shape.userID, g.shape.config = g.Restricted, g.UserID, g.Config
	g.shape.opmImage, g.shape.utilImage = g.OPMImage, g.UtilImage
	for _, name := range g.PullSecrets {
		g.shape.pullSecrets = append(g.shape.pullSecrets, corev1.LocalObjectReference{Name: name})
	}
	hash, _ := olmcore.Hash(g.shape.spec(profile))
	return hash
}

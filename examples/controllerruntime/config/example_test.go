// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"

	"github.com/olmcore/olm/examples/controllerruntime/config"
)

// What kubectl apply -k makes of the folder default.
func ExampleRender() {
	objects, err := config.Render("default")
	if err != nil {
		panic(err)
	}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			fmt.Println(o.GetKind(), o.GetName())
		}
	}
	// Output:
	// Namespace olm
	// ServiceAccount olm
	// Role olm-leader-election
	// RoleBinding olm-leader-election
	// Deployment olm
	// Service olm-metrics
	// PodDisruptionBudget olm
	// ClusterRole olm
	// ClusterRoleBinding olm
	// ClusterRole olm-customresources
	// ClusterRoleBinding olm-customresources
}

// SPDX-License-Identifier: Apache-2.0

package csvtest

import (
	"encoding/json"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Plan returns a complete InstallPlan with the steps for the permissions of a ClusterServiceVersion.
func Plan(c *v1alpha1.ClusterServiceVersion) *v1alpha1.InstallPlan {
	planned, err := olmcore.PermissionObjects(c)
	if err != nil {
		panic(err)
	}
	plan := &v1alpha1.InstallPlan{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "install-1", UID: "install-1", ResourceVersion: "1"},
		Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{c.Name}},
	}
	plan.Status.Phase, plan.Status.CatalogSources = v1alpha1.InstallPlanPhaseComplete, []string{}
	for _, o := range planned {
		gvk := olmcore.GVKOf(o)
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // OLM leaves it out
		text, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		resource := v1alpha1.StepResource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: o.GetName()}
		resource.Manifest = string(text) + "\n"
		step := &v1alpha1.Step{Resolving: c.Name, Status: v1alpha1.StepStatusCreated, Resource: resource}
		plan.Status.Plan = append(plan.Status.Plan, step)
	}
	return plan
}

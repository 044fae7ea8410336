// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// renamed is version 2 of the operator that the API server calls, with a Deployment of another name.
func renamed() *v1alpha1.ClusterServiceVersion {
	c := called("cool.v2", 2)
	c.Spec.Replaces = "cool.v1"
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "cool-next"
	for i := range c.Spec.WebhookDefinitions {
		c.Spec.WebhookDefinitions[i].DeploymentName = "cool-next"
	}
	c.Spec.APIServiceDefinitions.Owned[0].DeploymentName = "cool-next"
	return c
}

// onlyConverting removes from a version what the API server calls, except for the conversion.
func onlyConverting(c *v1alpha1.ClusterServiceVersion) {
	c.Spec.WebhookDefinitions = slices.DeleteFunc(c.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
		return w.Type != v1alpha1.ConversionWebhook
	})
	c.Spec.APIServiceDefinitions.Owned = nil
}

// onlyServing removes from a version what the API server calls, except for the APIService.
func onlyServing(c *v1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions = nil }

// onlyAdmitting removes from a version what the API server calls, except for the admission webhooks.
func onlyAdmitting(c *v1alpha1.ClusterServiceVersion) {
	c.Spec.WebhookDefinitions = slices.DeleteFunc(c.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
		return w.Type == v1alpha1.ConversionWebhook
	})
	c.Spec.APIServiceDefinitions.Owned = nil
}

// TestSucceededVersionConvertsItsCRD checks that a version is not Succeeded before its CRD calls its own Service for
// conversions. The Service of the previous version is deleted as soon as the version is Succeeded.
func TestSucceededVersionConvertsItsCRD(t *testing.T) {
	secret := olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "cool-next-service-cert"}
	for name, row := range map[string]struct {
		// isMarked: the CRD has the annotation olmcore/converted-by. isSecretDeleted: a user deletes the Secret of the next
		// version.
		isMarked, isSecretDeleted bool
		change                    func(c *v1alpha1.ClusterServiceVersion)
	}{
		"of a version that the controller installed":                       {isMarked: true},
		"of a version that OLM installed":                                  {},
		"while nothing else is called":                                     {isMarked: true, isSecretDeleted: true, change: onlyConverting},
		"of OLM, while nothing else is called":                             {isSecretDeleted: true, change: onlyConverting},
		"while only an APIService is called":                               {isSecretDeleted: true, change: onlyServing},
		"while only admission webhooks are called":                         {isSecretDeleted: true, change: onlyAdmitting},
		"while the certificate of the next version is replaced":            {isMarked: true, isSecretDeleted: true},
		"of a version that OLM installed, while a certificate is replaced": {isSecretDeleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			cluster, driver := newWorld(csv.Config{})
			first, next := called("cool.v1", 1), renamed()
			if row.change != nil {
				row.change(first)
				row.change(next)
			}
			require.NoError(t, cluster.Create(first, groupFor(first)))
			require.NoError(t, cluster.Create(needs(first)...))
			for _, crd := range definitionsFor(first) {
				serve(crd, "v2")
				crd.Annotations = map[string]string{
					"operatorframework.io/installed-alongside-1": "ns/cool.v1", "operatorframework.io/installed-alongside-2": "ns/cool.v2",
				}
				require.NoError(t, cluster.Create(crd))
			}
			require.NoError(t, driver.RunFor(ctx, 10*time.Minute))
			require.NoError(t, cluster.Serving().Check())
			if !row.isMarked {
				require.NoError(t, fake.Edit(cluster, "", "cools.example.com", func(crd *apiextensionsv1.CustomResourceDefinition) {
					delete(crd.Annotations, "olmcore/converted-by")
				}))
			}
			require.NoError(t, cluster.Create(next))
			for _, o := range needs(next) {
				if err := cluster.Create(o); !apierrors.IsAlreadyExists(err) {
					require.NoError(t, err)
				}
			}
			isDeleted := !row.isSecretDeleted
			for rounds := 0; ; rounds++ {
				require.Less(t, rounds, 400, "the controllers come to rest")
				if !isDeleted && fake.Find[*appsv1.Deployment](cluster, "ns", "cool-next") != nil {
					require.NotNil(t, fake.Find[*corev1.Secret](cluster, "ns", secret.Name))
					require.NoError(t, cluster.Delete(secret))
					cluster.Advance(time.Minute) // the next certificate is another one
					isDeleted = true
				}
				again, err := driver.Round(ctx)
				require.NoError(t, err)
				if again || cluster.Step() {
					continue
				}
				at, waits := driver.Deadline()
				if !waits || at.Sub(cluster.Now()) > time.Hour {
					break
				}
				cluster.Advance(at.Sub(cluster.Now()))
			}
			require.True(t, isDeleted)
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1"))
			require.Equal(t, succeeded, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v2").Status.Phase)
			require.NoError(t, cluster.Serving().Check(), "%s", controller.Format(driver.Events))
		})
	}
}

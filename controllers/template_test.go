// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// TestImageTemplatesAreResolved: a CatalogSource with an image template runs the image of this API server's version and
// says so; one whose template is wrong keeps its image.
func TestImageTemplatesAreResolved(t *testing.T) {
	const plain, templated = "quay.io/example/catalog:v0", "quay.io/example/catalog:v{kube_major_version}.{kube_minor_version}"
	for name, tt := range map[string]struct {
		options  controllers.Options
		template string
		image    string
		want     map[string]string
	}{
		"a template": {
			controllers.Options{KubernetesVersion: "v1.36.2"}, templated, "quay.io/example/catalog:v1.36",
			map[string]string{"TemplatesHaveResolved": "True", "ResolvedImage": "True"},
		},
		"a template with an unknown part": {
			controllers.Options{KubernetesVersion: "v1.36.2"}, "quay.io/example/catalog:{v", plain,
			map[string]string{"TemplatesHaveResolved": "False", "ResolvedImage": "False"},
		},
		"no template":                {controllers.Options{KubernetesVersion: "v1.36.2"}, "", plain, map[string]string{}},
		"an unknown version":         {controllers.Options{}, templated, plain, map[string]string{}},
		"a version that is supposed": {controllers.Options{KubernetesVersion: "v1.999.0", IgnoreImageTemplates: true}, templated, plain, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewCluster(noon)
			c.AutoCreateNamespaces = true
			require.NoError(t, c.Node("a").Create(nil))
			cs := &v1alpha1.CatalogSource{ObjectMeta: named("community"), Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: plain}}
			if tt.template != "" {
				cs.Annotations = map[string]string{"olm.catalogImageTemplate": tt.template}
			}
			require.NoError(t, c.Create(cs))
			runners := controllers.New(&tt.options).Runners(c, c)
			settle := func() *v1alpha1.CatalogSource {
				for range 10 {
					require.NoError(t, controller.Pass(t.Context(), runners, c.Now))
					require.NoError(t, c.RunFor(10*time.Second))
				}
				got, err := olmcore.Get[*v1alpha1.CatalogSource](t.Context(), c, "ops", "community")
				require.NoError(t, err)
				return got
			}
			told := func(cs *v1alpha1.CatalogSource) map[string]string {
				status := map[string]string{}
				for _, kind := range []string{catalog.ConditionTemplatesHaveResolved, catalog.ConditionResolvedImage} {
					if condition := meta.FindStatusCondition(cs.Status.Conditions, kind); condition != nil {
						status[kind] = string(condition.Status)
					}
				}
				return status
			}
			got := settle()
			require.Equal(t, tt.image, got.Spec.Image)
			require.Equal(t, tt.want, told(got))
			require.Equal(t, "True", string(meta.FindStatusCondition(got.Status.Conditions, catalog.ConditionAvailable).Status))
			pods := served(t, c)
			require.Len(t, pods, 1)
			require.Equal(t, tt.image, pods[0].Spec.Containers[0].Image)

			require.NoError(t, fake.Edit(c, "ops", "community", func(cs *v1alpha1.CatalogSource) { cs.Annotations = nil }))
			require.Empty(t, told(settle()), "nothing is told of a template that is gone")
		})
	}
}

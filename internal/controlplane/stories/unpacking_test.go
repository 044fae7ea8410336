// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/controlplane"
)

const (
	bundleUnpacking    = "BundleUnpacking"
	bundleUnpackFailed = "BundleUnpackFailed"
	guidance           = ". Auto-retry: unpacking is retried every 5 minutes. Common causes: the image does not exist or cannot be pulled, " +
		"or its Pod cannot be scheduled. " +
		"To retry at once, delete the failed Job with the label operatorframework.io/bundle-unpack-ref in the namespace of the catalog"
)

// alphaImage is the image of alpha's bundle.
const alphaImage = "bundles/alpha.v1.0.0"

// unpackJobs are the Jobs that unpack bundles for the story.
func unpackJobs(s *story) []*batchv1.Job { return list[*batchv1.Job](s) }

// noPull is an image that cannot be pulled.
func noPull() controlplane.Image {
	return controlplane.Image{Waits: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}}
}

// annotated is an OperatorGroup with annotations.
func annotated(annotations string) string {
	return `{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group, annotations: {` + annotations + `}}, spec: {targetNamespaces: [NS]}}`
}

const (
	fastTimeout = "operatorframework.io/bundle-unpack-timeout: 3s"
	fastRetry   = "operatorframework.io/bundle-unpack-min-retry-interval: 1s"
)

// unlimited takes the time limit away.
func unlimited(o *operatorsv1.OperatorGroup) {
	delete(o.Annotations, "operatorframework.io/bundle-unpack-timeout")
}

func TestBundlesInImagesAreUnpacked(t *testing.T) {
	t.Parallel()
	tell(t, "by a Job, into a ConfigMap that the steps of the plan refer to", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(inImage(nil), brings(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}`)))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Equal(s, map[string]string{"a": "b"}, get[*corev1.ConfigMap](s, "extra").Data)
		jobs := unpackJobs(s)
		require.Len(s, jobs, 1)
		require.Equal(s, jobs[0].Name, jobs[0].Labels["operatorframework.io/bundle-unpack-ref"])
		require.Equal(s, "true", jobs[0].Labels["olm.managed"])
		content := get[*corev1.ConfigMap](s, jobs[0].Name)
		require.Equal(s, s.image(alphaImage), content.Annotations["olm.sourceImage"])
		require.Equal(s, "community", content.OwnerReferences[0].Name)
		require.Contains(s, s.plan("alpha").Status.Plan[0].Resource.Manifest, jobs[0].Name)
		require.Empty(s, s.plan("alpha").Status.BundleLookups[0].Conditions)
		says[*v1alpha1.Subscription](s, "alpha", bundleUnpacking, "")
	})
	tell(t, "with the pull secrets of the CatalogSource", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(inImage(nil)))
		edit(s, "community", func(c *v1alpha1.CatalogSource) { c.Spec.Secrets = []string{"pull-one", "pull-two"} })
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Equal(s, []corev1.LocalObjectReference{{Name: "pull-one"}, {Name: "pull-two"}}, unpackJobs(s)[0].Spec.Template.Spec.ImagePullSecrets)
	})
	tell(t, "before there is a plan to approve", func(s *story) {
		s.group()
		s.imageIs(alphaImage, noPull())
		s.catalog("community", alphaWith(inImage(nil)))
		s.subscribe("alpha", manual)
		s.until("it is being unpacked", func() bool {
			return strings.HasPrefix(conditionOf(s.subscription("alpha"), bundleUnpacking), "True UnpackingInProgress")
		})
		require.Empty(s, list[*v1alpha1.InstallPlan](s))
		s.imageIs(alphaImage, controlplane.Image{})
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", bundleUnpacking, "")
	})
	tell(t, "and the Subscription says when the image cannot be pulled", func(s *story) {
		s.group()
		s.imageIs(alphaImage, noPull())
		s.catalog("community", alphaWith(inImage(nil)))
		s.subscribe("alpha")
		s.until("it says so", func() bool {
			text := conditionOf(s.subscription("alpha"), bundleUnpacking)
			return strings.HasPrefix(text, "True UnpackingInProgress: ") && strings.Contains(text, "ImagePullBackOff")
		})
		s.imageIs(alphaImage, controlplane.Image{})
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "within the time that the OperatorGroup gives, else that has failed", func(s *story) {
		s.given(annotated(fastTimeout))
		s.imageIs(alphaImage, noPull())
		s.catalog("community", alphaWith(inImage(nil)))
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", bundleUnpackFailed,
			"True BundleUnpackFailed: Bundle unpacking failed - DeadlineExceeded: Job was active longer than specified deadline"+guidance)
		require.Equal(s, int64(3), *unpackJobs(s)[0].Spec.ActiveDeadlineSeconds)
		says[*v1alpha1.Subscription](s, "alpha", bundleUnpacking, "")
	})
	tell(t, "and tried again after the interval that the OperatorGroup gives", func(s *story) {
		s.given(annotated(fastTimeout + ", " + fastRetry))
		s.imageIs(alphaImage, noPull())
		s.catalog("community", alphaWith(inImage(nil)))
		s.subscribe("alpha")
		s.until("a second Job tries", func() bool { return len(unpackJobs(s)) >= 2 })
		edit(s, "group", unlimited)
		s.imageIs(alphaImage, controlplane.Image{})
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", bundleUnpackFailed, "")
	})
	tell(t, "and tried again at once when the Job that failed is deleted", func(s *story) {
		s.given(annotated(fastTimeout))
		s.imageIs(alphaImage, noPull())
		s.catalog("community", alphaWith(inImage(nil)))
		s.subscribe("alpha")
		s.until("it has failed", func() bool {
			return strings.HasPrefix(conditionOf(s.subscription("alpha"), bundleUnpackFailed), "True BundleUnpackFailed")
		})
		s.imageIs(alphaImage, controlplane.Image{})
		edit(s, "group", unlimited)
		remove[*batchv1.Job](s, unpackJobs(s)[0].Name)
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "by a Pod that is started four times, else the Job has failed", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(inImage(func(image *bundleImage) { image.fails = "no space left on device" })))
		s.subscribe("alpha")
		says[*v1alpha1.Subscription](s, "alpha", bundleUnpackFailed,
			"True BundleUnpackFailed: Bundle unpacking failed - BackoffLimitExceeded: Job has reached the specified backoff limit"+guidance)
	})
	tell(t, "and one without a ClusterServiceVersion contains no bundle", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(inImage(func(image *bundleImage) { image.files = map[string]string{"README": "nothing"} })))
		s.subscribe("alpha")
		s.until("it says so", func() bool {
			return strings.HasPrefix(conditionOf(s.subscription("alpha"), bundleUnpackFailed), "True BundleUnpackFailed: Bundle unpacking failed - BundleEmpty: unpack job finished but "+s.ns+"/")
		})
	})
	tell(t, "with the usual time limit when that of the OperatorGroup cannot be read", func(s *story) {
		s.given(annotated("operatorframework.io/bundle-unpack-timeout: soon"))
		s.catalog("community", alphaWith(inImage(nil)))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Equal(s, int64(600), *unpackJobs(s)[0].Spec.ActiveDeadlineSeconds)
	})
	tell(t, "without a time limit when the OperatorGroup gives none", func(s *story) {
		s.given(annotated(`operatorframework.io/bundle-unpack-timeout: "0"`))
		s.catalog("community", alphaWith(inImage(nil)))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Nil(s, unpackJobs(s)[0].Spec.ActiveDeadlineSeconds)
		require.True(s, exists[*operatorsv1.OperatorGroup](s, "group"))
	})
	tell(t, "each version of its own image, on the way of an upgrade", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").
			bundle("alpha.v1.0.0", inImage(nil)).bundle("alpha.v1.1.0", inImage(nil)))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.installed("alpha", "alpha.v1.1.0")
		require.Len(s, unpackJobs(s), 2)
	})
}

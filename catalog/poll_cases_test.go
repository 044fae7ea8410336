// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
)

// pollCases are those of reconcileCases that are about polling.
var pollCases = map[string]reconcileCase{
	"a poll interval that is none": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling("1d") })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-5 * time.Minute)))
	}, `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=True PollIntervalInvalid: error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: unknown unit "d" in duration "1d"
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
  {"message":"error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: unknown unit \"d\" in duration \"1d\"","reason":"InvalidIntervalError","latestImageRegistryPoll":"2026-01-01T00:55:00Z","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
Warning PollIntervalInvalid : error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: unknown unit "d" in duration "1d"
again in 10m0s
`},
	"a poll that is due starts a candidate": {pollAgo(45*time.Minute, nil), `
create Pod olm/cool-2fnkoshaj3 (PollDue: it is time to look for newer content of the image)
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
`},
	"a poll that is not due is waited for": {pollAgo(44*time.Minute, nil), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
again in 1m0s
`},
	"a poll of an image that the registry says is unchanged needs no Pod": {pollAgo(45*time.Minute, func(in *catalog.Input) {
		in.ResolvedDigest = in.Pods.Items[0].Status.ContainerStatuses[0].ImageID[strings.Index(in.Pods.Items[0].Status.ContainerStatuses[0].ImageID, "@")+1:]
	}), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=True UpToDate: the last poll found the content that is served
  {"latestImageRegistryPoll":"2026-01-01T01:00:00Z","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
`},
	"the start of a poll is recorded when its Pod is seen": {pollAgo(46*time.Minute, probe(func(p *corev1.Pod) { unready(p) })), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
  {"latestImageRegistryPoll":"2026-01-01T00:59:00Z","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
again in 9m0s
`},
	"a candidate with the same content goes": {pollAgo(time.Minute, probe(nil)), `
delete Pod olm/cool-zz (UpToDate: the image has not changed) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=True UpToDate: the last poll found the content that is served
`},
	"a candidate with new content takes over": {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "repo@sha256:new" })), `
update Pod olm/cool-zz (CandidateReady: the Pod takes over) {"metadata":{"labels":{"catalogsource.operators.coreos.com/update":"","olm.catalogSource":"cool"}}}
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=True ContentUpdate: registry pods with newer content replace the others
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
notify [olm]
`},
	"a candidate whose content is unknown is waited for": {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "" })), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
again in 9m0s
`},
	"a candidate that crashes is given up": {pollAgo(time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	})), `
delete Pod olm/cool-zz (CandidateFailed: the Pod that polls the image crashes) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=False CandidateFailed: the pod of the last poll crashes
  {"message":"couldn't ensure registry server - error ensuring update pod for catalog source cool: update pod cool-zz in a Running state: deleted update pod","reason":"RegistryServerError","latestImageRegistryPoll":"2026-01-01T00:59:00Z","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
Warning CandidateFailed : the pod of the last poll crashes
again in 9m0s
`},
	"a candidate that never gets ready is given up": {pollAgo(10*time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.CreationTimestamp = metav1.NewTime(start.Add(50 * time.Minute))
	})), `
delete Pod olm/cool-zz (CandidateTimedOut: the Pod that polls the image did not become ready in time: not ready) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=False CandidateTimedOut: the pod of the last poll did not become ready in time: not ready
Warning CandidateTimedOut : the pod of the last poll did not become ready in time: not ready
again in 10m0s
`},
	"a candidate rescues a catalog that does not serve": {pollAgo(time.Minute, func(in *catalog.Input) {
		probe(nil)(in)
		waiting(in, "ImagePullBackOff")
		in.Pods.Items[0].Status.ContainerStatuses[0].ImageID = ""
	}), `
update Pod olm/cool-zz (CandidateReady: the Pod takes over) {"metadata":{"labels":{"catalogsource.operators.coreos.com/update":"","olm.catalogSource":"cool"}}}
updateStatus CatalogSource olm/cool (StatusChanged: 0/1 registry pods ready: cool-w4nrrin4qx (a, cannot pull its image))
  Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, cannot pull its image)
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=True ImagePullFailed: cool-w4nrrin4qx on a: cannot pull its image
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error ImagePullFailed : cool-w4nrrin4qx on a: cannot pull its image
notify [olm]
again in 10m0s
`},
	"a broken image is polled for a better one": {pollAgo(time.Hour, func(in *catalog.Input) { waiting(in, "ImagePullBackOff") }), `
create Pod olm/cool-2fnkoshaj3 (PollDue: it is time to look for newer content of the image)
updateStatus CatalogSource olm/cool (StatusChanged: 0/1 registry pods ready: cool-w4nrrin4qx (a, cannot pull its image))
  Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, cannot pull its image)
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=True ImagePullFailed: cool-w4nrrin4qx on a: cannot pull its image
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error ImagePullFailed : cool-w4nrrin4qx on a: cannot pull its image
again in 10m0s
`},
	"a candidate of a poll that was switched off goes": {probe(nil), `
delete Pod olm/cool-zz (CandidateObsolete: as many Pods serve as asked for) grace=1 version=true
`},
	"a candidate that belongs to somebody else stays": {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.OwnerReferences = nil })), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=True ForeignPod: cool-zz on b: it has the catalog's labels and another owner
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
Warning ForeignPod : cool-zz on b: it has the catalog's labels and another owner
again in 15m0s
`},
	"a candidate of another spec is never promoted": {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Labels["olm.pod-spec-hash"] = "old" })), `
delete Pod olm/cool-zz (CandidateObsolete: the Pod was made from another spec) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
`},
	"a promotion that was interrupted is finished": {pollAgo(time.Minute, func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) {
			p.Annotations["olmcore/purpose"], p.Status.ContainerStatuses[0].ImageID = "poll", "repo@sha256:new"
		})
	}), `
delete Pod olm/cool-w4nrrin4qx (ContentDiffers: other Pods serve newer content of the same image) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged: 2/1 registry pods ready: cool-w4nrrin4qx (a), cool-zz (b))
  Available=True RegistryServing: 2/1 registry pods ready: cool-w4nrrin4qx (a), cool-zz (b)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=True UpdatePromoted: the last poll found newer content, which is served now
`},
	"a poll in the future counts as now": {pollAgo(-time.Hour, nil), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
  {"latestImageRegistryPoll":"2026-01-01T01:00:00Z","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
again in 15m0s
`},
	"a poll of a clock that was ahead counts once its time has come": {pollAgo(time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.CreationTimestamp = metav1.NewTime(start.Add(65 * time.Minute))
	})), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
again in 5m0s
`},
	"newer content that a clock ahead polled serves, and counts as a poll once its time has come": {pollAgo(time.Minute, func(in *catalog.Input) {
		in.Pods.Items[0].Annotations["olmcore/purpose"], in.Pods.Items[0].CreationTimestamp = "poll", metav1.NewTime(start.Add(65*time.Minute))
	}), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=Unknown NeverPolled: the image has not been polled yet
again in 5m0s
`},
	"an image with a digest is not polled": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.UpdateStrategy = "repo@sha256:1", polling("1h") })
		in.Pods.Items = nil
	}, `
create Pod olm/cool-ugl3motcwc (PodMissing: fewer registry Pods exist than asked for)
updateStatus CatalogSource olm/cool (StatusChanged: 0/1 registry pods ready)
  Available=False NoReadyPods: 0/1 registry pods ready
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=False ImagePinnedByDigest: the image is pinned by its digest and cannot change
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotAfter
`},
	"what became of a poll outlives a spec that is wrong for a while": {pollAgo(time.Minute, func(in *catalog.Input) {
		in.CatalogSource.Spec.SourceType = ""
		in.CatalogSource.Status.Conditions = append(in.CatalogSource.Status.Conditions, metav1.Condition{
			Type: "UpdatePolled", Status: "True", Reason: catalog.ReasonUpToDate, Message: "the last poll found the content that is served", ObservedGeneration: 2})
	}), `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False SpecInvalid: unknown sourcetype: 
  Degraded=True SpecInvalid: unknown sourcetype: 
  {"message":"unknown sourcetype: ","reason":"SpecInvalidError","latestImageRegistryPoll":"2026-01-01T00:59:00Z","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
Warning SpecInvalid spec.sourceType: unknown sourcetype:
`},
	"an address is not polled": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address, s.UpdateStrategy = "", "foo:1", polling("1h") })
		in.Connection.Address = "foo:1"
		in.Pods.Items = nil
	}, `
delete Service olm/cool (SourceTypeChanged: the registry at spec.address serves now)
delete NetworkPolicy olm/cool-grpc-server (SourceTypeChanged: the registry at spec.address serves now)
delete NetworkPolicy olm/cool-unpack-bundles (SourceTypeChanged: the registry at spec.address serves now)
delete ServiceAccount olm/cool (SourceTypeChanged: the registry at spec.address serves now)
updateStatus CatalogSource olm/cool (StatusChanged: registry at foo:1)
  Available=True ConnectionReady: registry at foo:1
  Progressing=False Complete: nothing left to do
  Degraded=False AsExpected: nothing needs attention
  UpdatePolled=False PollingDisabled: only images are polled
  {"registryService":{"protocol":"grpc","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"foo:1","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
`},
}

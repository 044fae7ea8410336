// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/olmcore/olm/olmcore"
)

// hashes are the spec hashes that a CatalogSource's objects shall have. They are
// computed when somebody asks, and remembered in the text of Outcome.PodHash:
// what they were computed from, the Service's, one of each profile, and the
// ConfigMap's content, and the Service's address, joined by dots; empty ones are
// not computed yet.
type hashes struct {
	seal    uint64
	service string
	pods    [len(profiles)]string
	content string
	address string
	// text is the form that was handed in, empty when it does not fit.
	text  string
	fresh bool
}

// readHashes takes over a text whose seal fits.
func readHashes(text string, seal uint64) hashes {
	h := hashes{seal: seal}
	head, rest, _ := strings.Cut(text, ".")
	if have, err := strconv.ParseUint(head, 16, 64); err != nil || have != seal || seal == 0 {
		return h
	}
	h.text = text
	h.service, rest, _ = strings.Cut(rest, ".")
	for i := range h.pods {
		h.pods[i], rest, _ = strings.Cut(rest, ".")
	}
	h.content, h.address, _ = strings.Cut(rest, ".")
	return h
}

// String returns the text for Outcome.PodHash; what was handed in when nothing
// was added. Without a seal nothing can be remembered.
func (h *hashes) String() string {
	if !h.fresh || h.seal == 0 {
		return h.text
	}
	return strconv.FormatUint(h.seal, 16) + "." + h.service + "." + strings.Join(h.pods[:], ".") + "." + h.content + "." + h.address
}

// sealOf is a fingerprint of all that the hashes depend on; 0 when the object's
// version is not known. The UID and generation stand for the spec.
func (v *view) sealOf() uint64 {
	cs := v.cs
	if cs.Generation == 0 {
		return 0
	}
	f := fingerprint(fnvOffset).text(string(cs.UID)).number(cs.Generation).text(cs.Name).text(cs.Namespace)
	f = f.text(cs.Annotations[annotationPrio]).text(v.set.resourcesText)
	f = f.text(v.set.opmImage).text(v.set.utilImage).number(v.set.userID).number(int64(v.in.Config.StartupFailureThreshold)).flag(v.restricted())
	if fromConfigMap(cs) {
		f = f.text(v.set.cmImage)
		if cm := v.configMap(); cm != nil {
			if cm.ResourceVersion == "" {
				return 0
			}
			f = f.text(string(cm.UID)).text(cm.ResourceVersion)
		}
	}
	for i := range v.pullSecrets {
		f = f.text(v.pullSecrets[i].Name)
	}
	if r := v.set.resources; r != nil {
		f = f.number(sumOf(r.Requests)).number(sumOf(r.Limits))
		for i := range r.Claims {
			f = f.text(r.Claims[i].Name).text(r.Claims[i].Request)
		}
	}
	return max(uint64(f), 1)
}

// sumOf is independent of the map's order.
func sumOf(list corev1.ResourceList) (sum int64) {
	for name, quantity := range list {
		sum += int64(fingerprint(fnvOffset).text(string(name)).number(quantity.Value()).number(milli(quantity)))
	}
	return sum
}

func milli(q resource.Quantity) int64 { return q.ScaledValue(resource.Milli) }

type fingerprint uint64

const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

func (f fingerprint) text(s string) fingerprint {
	for i := range len(s) {
		f = (f ^ fingerprint(s[i])) * fnvPrime
	}
	return (f ^ 0xff) * fnvPrime // no byte of UTF-8: ends the text
}

func (f fingerprint) number(n int64) fingerprint {
	for range 8 {
		f = (f ^ fingerprint(n&0xff)) * fnvPrime
		n >>= 8
	}
	return f
}

func (f fingerprint) flag(b bool) fingerprint {
	if b {
		return f.number(1)
	}
	return f.number(0)
}

// podHash returns the hash of a profile's Pod.
func (v *view) podHash(profile int) string {
	if v.hashes.pods[profile] == "" {
		hash, err := olmcore.Hash(v.shape().spec(profiles[profile]))
		if err != nil {
			hash = "unknown" // no label has it: unreachable for what an API server stores
		}
		v.hashes.pods[profile], v.hashes.fresh = hash, true
	}
	return v.hashes.pods[profile]
}

func (v *view) serviceHash() string {
	if v.hashes.service == "" {
		v.hashes.service, _ = olmcore.Hash(v.serviceSpec())
		v.hashes.fresh = true
	}
	return v.hashes.service
}

// address is what to dial for the Service.
func (v *view) serviceAddress() string {
	if v.hashes.address == "" {
		v.hashes.address = serviceName(v.cs.Name) + "." + v.cs.Namespace + ".svc:" + grpcPortText
		v.hashes.fresh = true
	}
	return v.hashes.address
}

// current reports whether a Pod was made from the present spec, by any release
// that is accepted.
func (v *view) current(pod *corev1.Pod) bool {
	label := pod.Labels[labelPodHash]
	if label == "" {
		return false
	}
	if fromConfigMap(v.cs) && !v.knowsContent(pod) {
		return v.sameContent(pod) // OLM compares no hash of a config map server
	}
	for i, accepted := range v.set.accept {
		if accepted && v.podHash(i) == label {
			return !fromConfigMap(v.cs) || v.sameContent(pod)
		}
	}
	return false
}

// restricted reports whether the Pod gets the security context of the restricted
// Pod security standard.
func (v *view) restricted() bool {
	if c := v.cs.Spec.GrpcPodConfig; c != nil && c.SecurityContextConfig != "" {
		return c.SecurityContextConfig == "restricted"
	}
	return v.in.Namespace != nil && v.in.Namespace.Labels[labelPodSecurity] == "restricted"
}

// shape returns what the registry Pod is made from.
func (v *view) shape() podShape {
	if fromConfigMap(v.cs) {
		return podShape{
			startupFailures: v.in.Config.StartupFailureThreshold,
			container:       configMapServerName, image: v.set.cmImage, readinessDelay: 5, livenessDelay: 5,
			restricted: v.restricted(), userID: v.set.userID, resources: v.set.effectiveResources(),
			config: withoutExtraction(v.cs.Spec.GrpcPodConfig), priorityClass: v.cs.Annotations[annotationPrio],
		}
	}
	return podShape{
		startupFailures: v.in.Config.StartupFailureThreshold,
		container:       serverName, image: v.cs.Spec.Image, serviceAccount: v.cs.Name, pullSecrets: v.pullSecrets,
		readinessDelay: 5, livenessDelay: 10,
		restricted: v.restricted(), userID: v.set.userID, resources: v.set.effectiveResources(),
		opmImage: v.set.opmImage, utilImage: v.set.utilImage,
		config: v.cs.Spec.GrpcPodConfig, priorityClass: v.cs.Annotations[annotationPrio],
	}
}

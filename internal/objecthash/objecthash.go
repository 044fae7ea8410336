// SPDX-License-Identifier: Apache-2.0

// Package objecthash contains OLM's hashes of objects, and the names that OLM makes from them. They are bit-identical
// to OLM's, so the objects of a running cluster are recognised.
package objecthash

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math/big"
)

// Hash returns OLM's hash of an object, bit for bit: SHA-224 over the JSON encoding of v followed by one newline, as
// base62 (digits, lower case, upper case). It labels Pods, Services and Deployments and is part of permission names,
// so objects of a running cluster are recognised and not rolled. The error is that of encoding/json.
//
// Source: operator-lifecycle-manager pkg/lib/kubernetes/pkg/util/hash and its callers.
func Hash(v any) (string, error) {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(v); err != nil {
		return "", err
	}
	return base62(buf.Bytes()), nil
}

// HashWithoutNewline returns the variant of Hash that OLM uses for olm.permissions.hash: no newline after the JSON.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, PolicyRuleHashLabelValue.
func HashWithoutNewline(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base62(data), nil
}

// HashCanonical returns the base62 SHA-224 of the JSON encoding of v: keys sorted, no HTML escaping, no white space, no
// newline. v holds JSON values as olmcore.ToMap returns them.
func HashCanonical(v map[string]any) (string, error) {
	data, err := CanonicalJSON(v)
	if err != nil {
		return "", err
	}
	return base62(data), nil
}

// CanonicalJSON returns JSON values encoded with sorted keys, without HTML escaping, white space and final newline.
func CanonicalJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// HashedName returns OLM's name for an object made from content: base, cut so that the whole fits 63 bytes, a dash, and
// Hash(v). At exactly 63 bytes OLM does not cut and the name is 64 long; so does this.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, generateName.
func HashedName(base string, v any) (string, error) {
	const limit = 63
	hash, err := Hash(v)
	if err != nil {
		return "", err
	}
	if len(base)+len(hash) > limit {
		base = base[:max(0, limit-len(hash)-1)]
	}
	return base + "-" + hash, nil
}

func base62(data []byte) string {
	sum := sha256.Sum224(data)
	return new(big.Int).SetBytes(sum[:]).Text(62)
}

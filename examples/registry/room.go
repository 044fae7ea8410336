// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"sync"
)

// room is what the catalogs of one namespace may send and keep together: whoever may write CatalogSources there may
// write many.
type room struct {
	namespace string
	most      int64

	mu   sync.Mutex
	used int64
}

// part is what one catalog has of the room of its namespace. Only the goroutine of its client uses it.
type part struct {
	of *room
	// held is the size of the content that is kept, taken that of what has been read of the next: while there are
	// both, the larger one counts.
	held, taken int64
}

// take takes so much more for what is being read.
func (p *part) take(size int64) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	used := p.of.used - max(p.held, p.taken) + max(p.held, p.taken+size)
	if used > p.of.most {
		return &limitError{
			text: fmt.Sprintf("the catalogs of namespace %s have more than %d bytes together: have fewer, or raise the limit (MaxNamespaceBytes, --registry-max-namespace-bytes)",
				p.of.namespace, p.of.most),
			shared: true,
		}
	}
	p.taken, p.of.used = p.taken+size, used
	return nil
}

// end is the end of reading: what was read is kept instead of what was held, or given back.
func (p *part) end(kept bool) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.used -= max(p.held, p.taken)
	if kept {
		p.held = p.taken
	}
	p.taken = 0
	p.of.used += p.held
}

// drop gives all of it back.
func (p *part) drop() {
	p.end(false)
	p.end(true)
}
